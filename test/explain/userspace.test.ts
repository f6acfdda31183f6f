import { runExplain } from './suite.ts';

// Nobody can tamper with listeners of a process, and what happens to its table test/userspace/inspection.test.ts tells.
runExplain({ mode: 'userspace', module: import.meta.url });
