import { runShortSoak } from './suite.ts';

runShortSoak('nftables', import.meta.url);
