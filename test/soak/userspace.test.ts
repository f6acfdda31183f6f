import { runShortSoak } from './suite.ts';

runShortSoak('userspace', import.meta.url);
