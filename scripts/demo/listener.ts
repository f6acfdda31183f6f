/**
 * `listener.ts PORT`: opens a listening socket and sends it to the process that started this one. A socket belongs to the
 * network namespace that it was opened in: a process in another one can so serve the user's browser.
 */
import { createServer } from 'node:net';
import { listenAtLoopback } from './loopback.ts';

const server = createServer();
await listenAtLoopback(server, Number(process.argv[2]));
process.on('disconnect', () => process.exit());
process.send?.('listening', server);
