import { runExplain } from './suite.ts';

// No other program can change the listeners of a process; test/userspace/inspection.test.ts tests changes of its table.
runExplain({ mode: 'userspace', module: import.meta.url });
