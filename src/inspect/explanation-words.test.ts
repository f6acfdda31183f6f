import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../test/cluster/plans.ts';
import type { Balance } from '../model/service-port.ts';
import { balanceText, departedText } from './explanation-words.ts';
import { serviceReport } from './service-report.ts';

test('a report says which hash chooses, or why none does', () => {
  const text = (balance: Balance, endpoints: number, hashScheduler?: string) => {
    const all = Array.from({ length: endpoints }, (_, i) => ({ ip: `10.244.0.${i}` }));
    const plan = planOf({ clusterIP: '10.96.0.1', balance }, all);
    return balanceText(serviceReport(plan, { hashScheduler }));
  };
  assert.equal(text('default', 2), undefined);
  assert.equal(text('hash', 2), "hash: by the client's address and port, the same on every node");
  assert.equal(text('hash-client', 2), "hash-client: by the client's address, the same on every node");
  assert.equal(text('hash', 2, 'mh'), "hash: by the client's address and port, with the scheduler mh");
  assert.match(text('hash', 121, 'mh') ?? '', /^as usual: too many endpoints/);
});

test('a report says what the Service asks for and the mode cannot do', () => {
  const asks = { unsupportedBalance: 'hash', unsupportedReset: true } as const;
  const report = serviceReport(planOf({ clusterIP: '10.96.0.1', ...asks }));
  assert.equal(
    balanceText(report),
    'as usual: the Service asks for hash, which is not possible in this proxy mode',
  );
  assert.equal(
    departedText(report),
    'no TCP reset: the Service asks for it, which is not possible in this proxy mode',
  );
  assert.equal(departedText(serviceReport(planOf({ clusterIP: '10.96.0.1' }))), undefined);
});
