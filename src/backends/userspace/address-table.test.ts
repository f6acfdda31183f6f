import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../../test/cluster/plans.ts';
import { frontendsOf } from '../../plan/frontend.ts';
import { addressRow, refusalNote, renderAddressTable } from './address-table.ts';

test('rows in columns, in order, with a dash where nothing is served', () => {
  const plan = planOf({ clusterIP: '10.96.0.1', portName: 'http' }, []);
  const rows = [
    addressRow(plan, ':30080/TCP', '', 'not captured: no privileges'),
    addressRow(plan, '10.96.0.1:80/TCP', '127.0.0.1:8080'),
  ];
  assert.equal(
    renderAddressTable(rows),
    [
      'SERVICE           FRONTEND          ADDRESS         NOTE',
      'default/web:http  10.96.0.1:80/TCP  127.0.0.1:8080',
      'default/web:http  :30080/TCP        -               not captured: no privileges',
    ].join('\n'),
  );
});

test('a refusal is told with its reason', () => {
  const plan = planOf({ clusterIP: '10.96.0.1' }, []);
  const [frontend] = frontendsOf(plan);
  assert.ok(frontend);
  assert.equal(refusalNote(frontend), `rejected: ${plan.internal.reason}`);
});
