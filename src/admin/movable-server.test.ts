import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../test/eventually.ts';
import { freePort } from '../../test/free-port.ts';
import { Capacity } from '../http/capacity.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../obs/log.ts';
import { MovableServer } from './movable-server.ts';

async function answers(port: number, host = '127.0.0.1'): Promise<boolean> {
  try {
    return (await (await fetch(`http://${host}:${port}/`)).text()) === 'ok';
  } catch {
    return false;
  }
}

async function serving(t: TestContext) {
  const port = await freePort('127.0.0.1');
  const failures: Error[] = [];
  const options = {
    name: 'metrics server',
    onHardFail: (error: Error) => failures.push(error),
    handler: (_request: unknown, response: { end(text: string): void }) => response.end('ok'),
    capacity: new Capacity(systemClock),
    clock: systemClock,
    logger: silentLogger,
  };
  const server = new MovableServer(options, { address: `127.0.0.1:${port}`, hardFail: false });
  t.after(() => server.move({ address: '', hardFail: false }));
  await eventually('the server', () => answers(port));
  return { server, port, failures };
}

test('a server moves to another port, and to nowhere and back', async (t) => {
  const { server, port } = await serving(t);
  const other = await freePort('127.0.0.1');
  await server.move({ address: `127.0.0.1:${other}`, hardFail: false });
  assert.deepEqual([await answers(other), await answers(port)], [true, false]);
  await server.move({ address: '', hardFail: false });
  assert.equal(await answers(other), false);
  await server.move({ address: `127.0.0.1:${port}`, hardFail: false });
  assert.ok(await answers(port));
});

test('a server moves from one address to all addresses at the same port, and back', async (t) => {
  const { server, port } = await serving(t);
  await server.move({ address: `0.0.0.0:${port}`, hardFail: false });
  assert.deepEqual([await answers(port), await answers(port, '127.0.0.2')], [true, true]);
  await server.move({ address: `127.0.0.1:${port}`, hardFail: false });
  assert.deepEqual([await answers(port), await answers(port, '127.0.0.2')], [true, false]);
});

test('a server that cannot listen at the new address stays at the former one, whatever hardFail says', async (t) => {
  const { server, port, failures } = await serving(t);
  const taken = await freePort('127.0.0.2');
  const squatter = createServer().listen(taken, '127.0.0.2');
  t.after(() => squatter.close());
  await once(squatter, 'listening');
  await assert.rejects(
    server.move({ address: `127.0.0.2:${taken}`, hardFail: true }),
    /address already in use/,
  );
  assert.ok(await answers(port));
  await assert.rejects(
    server.move({ address: `192.0.2.99:${port}`, hardFail: true }),
    /cannot assign|not available/i,
  );
  await eventually('the former address', () => answers(port));
  assert.deepEqual(failures, []);
});
