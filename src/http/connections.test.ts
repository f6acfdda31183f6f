import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { Connections, type Tenant } from './connections.ts';
import { Line, Turns } from './turns.ts';

function setup() {
  const clock = new FakeClock();
  const turns = new Turns(clock);
  const connections = new Connections(clock, turns);
  const line = new Line();
  const ended: string[] = [];
  const open = (name: string): Tenant => {
    const tenant: Tenant = {
      bytes: 0,
      work: () => {},
      destroy: () => {
        ended.push(name);
        connections.remove(tenant);
        line.leave(tenant);
      },
    };
    connections.add(tenant);
    connections.waits(tenant, 100_000);
    return tenant;
  };
  const flood = (name: string) => {
    const tenant = open(name);
    connections.isAwaited(tenant);
    turns.take(tenant, line, 'pipelined');
  };
  return { clock, connections, ended, open, flood };
}

test('a client that has just connected is not closed for others while one sends many requests at once', async () => {
  const { clock, ended, open, flood } = setup();
  for (let i = 0; i < 255; i++) flood(`flood ${i}`);
  open('polite');
  flood('one more');
  flood('yet one more');
  assert.deepEqual(ended, ['flood 0', 'flood 1']);
  await clock.advance(0);
});

test('a new connection ends the one that has waited for its client for the longest', async () => {
  const { clock, connections, ended, open } = setup();
  const tenants = Array.from({ length: 256 }, (_, i) => open(`silent ${i}`));
  await clock.advance(2_000);
  // The first one gets an answer, and the second one has read some of its answer.
  for (const [i, tenant] of tenants.slice(0, 2).entries()) {
    if (i === 0) connections.isAwaited(tenant);
    else connections.waits(tenant, 100_000);
  }
  open('one more');
  open('yet one more');
  assert.deepEqual(ended, ['silent 2', 'silent 3']);
});
