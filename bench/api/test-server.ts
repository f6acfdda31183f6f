/** Process of the test API server; its first message is its address. */
import { startApiServer } from '../../test/cluster/apiserver/server.ts';

const server = await startApiServer();
process.send?.(server.url);
process.once('disconnect', () => process.exit());
