import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Server } from 'node:net';
import { resolve } from 'node:path';
import { readPageFiles } from '../../src/ctl/page/page-files.ts';
import { addressOf, createPageServer } from '../../src/ctl/page/page-server.ts';
import { kernelTracer } from '../../src/ctl/page/page-trace.ts';
import { samePatience } from '../../src/ctl/patience.ts';
import { serverSource } from '../../src/ctl/server-source.ts';
import { pagesOf } from '../../src/ctl/source.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { listenAtLoopback } from './loopback.ts';
import type { Stage } from './stage.ts';

const wantedPort = 10_270;
const timeoutMs = 30_000;

/**
 * Serves the page of kube-proxyctl at a loopback address of the machine, also when this process is in a network
 * namespace of its own. Returns its address. Rejects when that cannot be done; `parent` is the process that called npm.
 */
export async function servePage({ metrics, ctl, hasOwnNetwork }: Stage, parent: number): Promise<string> {
  const source = serverSource(metrics, samePatience(timeoutMs));
  const server = createPageServer(readPageFiles(ctl), pagesOf(source), kernelTracer(source, systemClock));
  if (hasOwnNetwork) await once(server.listen(await listenerOutside(parent)), 'listening');
  else await listenAtLoopback(server, wantedPort);
  return addressOf(server);
}

/** A socket that listens in the network namespace of another process. */
async function listenerOutside(pid: number): Promise<Server> {
  const program = [process.execPath, resolve(import.meta.dirname, 'listener.ts'), String(wantedPort)];
  const child = spawn('nsenter', [`--net=/proc/${pid}/ns/net`, ...program], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const failed = once(child, 'exit').then(() => {
    throw new Error(stderr.trim() || 'nsenter ended');
  });
  const [, socket] = await Promise.race([once(child, 'message'), failed]);
  failed.catch(() => undefined);
  child.disconnect();
  if (!(socket instanceof Server)) throw new Error('nsenter sent no socket');
  return socket;
}
