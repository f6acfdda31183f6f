import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headers, marked, observer, step } from '../../test/trace/recorded-steps.ts';
import type { TraceListener, TraceStep } from '../kernel/nft/trace.ts';
import { systemClock } from '../lib/clock.ts';
import { type FollowKernel, followPackets, type TracedMode } from './follow.ts';
import { TRACE_TABLE } from './trace-table.ts';

const before = headers('10.244.1.5', '10.96.0.10', [40_000, 80]);
const dropped = [
  marked({ ...before, table: TRACE_TABLE, inInterface: 3 }),
  step('firewall', 'prerouting', { ruleHandle: 12n, verdict: { kind: 'drop' }, ...before }),
];

/** A kernel that reports something as soon as somebody listens. */
function kernel(report: (listener: TraceListener) => void): FollowKernel {
  return {
    nft: { commit: async () => ({ generation: 1, bytes: 0 }) },
    rules: { listChainRules: async () => [] },
    route: {
      listLinks: async () => [{ index: 3, name: 'veth3', kind: 'veth', isUp: true, isLoopback: false }],
      listAddresses: async () => [],
      interfaceTowards: async () => '',
    },
    conntrack: { forEachFlow: async () => {} },
    follow: (listener) => {
      report(listener);
      return { close() {} };
    },
  };
}

function follow(report: (listener: TraceListener) => void, packets = 1, forMs = 60_000, mode?: TracedMode) {
  const question = { subject: 'shop/web', interests: [], packets, forMs };
  const proxy = {
    mode,
    isOurs: () => false,
    ownerOf: () => undefined,
    explain: async () => undefined,
  };
  return followPackets(question, proxy, kernel(report), systemClock, new AbortController().signal);
}

function tell(steps: readonly TraceStep[]): (listener: TraceListener) => void {
  return (listener) => {
    for (const one of steps) listener.step(one);
  };
}

test('a trace ends when enough packets were seen', async () => {
  const report = await follow(tell(dropped));
  assert.deepEqual([report.kind, report.subject, report.isIncomplete], ['Trace', 'shop/web', false]);
  assert.deepEqual(
    report.connections.map(({ headline, entered }) => [headline, entered]),
    [
      [
        'Dropped by table ip firewall, chain prerouting, rule handle 12: 10.244.1.5:40000 → 10.96.0.10:80',
        'veth3',
      ],
    ],
  );
});

test('a trace ends when time is over, without steps of packets that others trace', async () => {
  const foreign = [observer('prerouting-first', before), ...dropped.slice(1)];
  assert.deepEqual((await follow(tell(foreign), 1, 1)).connections, []);
});

test('a trace tells that the kernel could not report every step', async () => {
  const { isIncomplete, connections } = await follow((listener) => {
    tell(dropped)(listener);
    listener.lost();
  });
  assert.deepEqual([isIncomplete, connections.length], [true, 1]);
});

test('a trace says that packets on the fast path are not shown, where connections take it', async () => {
  for (const hasFastPath of [true, false]) {
    const mode = { name: 'nftables', isTraceable: true, hasFastPath } as const;
    const { notShown } = await follow(tell(dropped), 1, 60_000, mode);
    assert.equal(
      notShown.some((text) => text.includes('on the fast path')),
      hasFastPath,
    );
  }
});

test('a trace fails when its subscription fails', async () => {
  const failing = follow((listener) => listener.failed(new Error('the socket broke')));
  await assert.rejects(failing, /the socket broke/);
});

test('an interrupted trace tells what it saw', async () => {
  const question = { subject: 'shop/web', interests: [], packets: 5, forMs: 60_000 };
  const proxy = {
    mode: undefined,
    isOurs: () => false,
    ownerOf: () => undefined,
    explain: async () => undefined,
  };
  const interrupted = AbortSignal.abort();
  const report = await followPackets(question, proxy, kernel(tell(dropped)), systemClock, interrupted);
  assert.equal(report.connections.length, 1);
});
