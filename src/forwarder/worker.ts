import { main } from './thread-main.ts';

await main();
