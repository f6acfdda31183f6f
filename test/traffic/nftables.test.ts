import { runTraffic } from './suite.ts';

runTraffic({ mode: 'nftables', module: import.meta.url });
