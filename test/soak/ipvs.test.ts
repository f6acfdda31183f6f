import { ipvsUnavailable } from '../ipvs/on-ipvs-kernel.ts';
import { runShortSoak } from './suite.ts';

runShortSoak('ipvs', import.meta.url, await ipvsUnavailable());
