import { runTraffic } from './suite.ts';

runTraffic({ mode: 'userspace', module: import.meta.url, forwardsItself: true });
