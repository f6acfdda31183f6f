import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IpvsTimeouts } from '../../kernel/ipvs/objects.ts';
import { parseDuration } from '../../lib/duration.ts';
import { type Logger, silentLogger } from '../../obs/log.ts';
import { setTimeouts } from './timeouts.ts';

test('nothing is set when nothing is configured', async () => {
  assert.deepEqual(await set('0s', '0s', '0s'), []);
});

test('all three are set in whole seconds when one is configured', async () => {
  assert.deepEqual(await set('15m1.9s', '0s', '5m'), [{ tcp: 901, tcpFin: 0, udp: 300 }]);
  assert.deepEqual(await set('0s', '0s', '500ms'), [{ tcp: 0, tcpFin: 0, udp: 0 }]);
  assert.deepEqual(await set('2000000h', '0s', '0s'), [{ tcp: 0xffffffff, tcpFin: 0, udp: 0 }]);
});

test('a refusal is logged only', async () => {
  const errors: unknown[] = [];
  const logger: Logger = { ...silentLogger, error: (error) => void errors.push(error) };
  const refusal = new Error('EINVAL');
  await setTimeouts({ setTimeouts: () => Promise.reject(refusal) }, configOf('1s', '0s', '0s'), logger);
  assert.deepEqual(errors, [refusal]);
});

async function set(tcp: string, tcpFin: string, udp: string): Promise<IpvsTimeouts[]> {
  const calls: IpvsTimeouts[] = [];
  const client = { setTimeouts: async (timeouts: IpvsTimeouts) => void calls.push(timeouts) };
  await setTimeouts(client, configOf(tcp, tcpFin, udp), silentLogger);
  return calls;
}

function configOf(tcp: string, tcpFin: string, udp: string) {
  return {
    ipvs: {
      scheduler: '',
      excludeCIDRs: null,
      strictARP: false,
      tcpTimeout: parseDuration(tcp),
      tcpFinTimeout: parseDuration(tcpFin),
      udpTimeout: parseDuration(udp),
    },
  };
}
