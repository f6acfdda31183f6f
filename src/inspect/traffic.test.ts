import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf } from '../../test/cluster/plans.ts';
import { QuestionError } from './question.ts';
import { flowFilter, readFlowQuestion, readGrouping } from './traffic.ts';
import type { FlowItem } from './traffic-api.ts';

const plan = planOf({ namespace: 'shop', name: 'web', clusterIP: '10.96.0.1' });
const flow: FlowItem = {
  family: 'IPv4',
  protocol: 'TCP',
  client: '10.1.0.9:40000',
  frontend: '10.96.0.1:80',
  service: plan.port.key,
  endpoint: '10.244.0.5:8080',
  pod: 'shop/web-7d4b9c5f6d-x2x9k',
  state: 'ESTABLISHED',
  ageSeconds: null,
  packetsToEndpoint: null,
  packetsToClient: null,
  bytesToEndpoint: null,
  bytesToClient: null,
};

function isWanted(query: string, isSelected = true): boolean {
  const parameters = new URLSearchParams(query);
  return flowFilter(
    readFlowQuestion((name) => parameters.get(name)),
    () => isSelected,
  )(flow, plan);
}

test('flows are selected by Service, namespace, client, endpoint, pod, protocol and state', () => {
  for (const query of [
    '',
    'name=web&namespace=shop',
    'client=10.1.0.9',
    'client=10.1.0.9:40000',
    'client=10.1.0.0/16',
    'endpoint=10.244.0.5',
    'pod=web-7d4b9c5f6d-x2x9k',
    'pod=shop/web-7d4b9c5f6d-x2x9k',
    'endpoint=10.244.0.5:8080&protocol=tcp&state=established',
    // An address is that of a client, a frontend or an endpoint.
    'name=10.1.0.9',
    'name=10.96.0.1:80',
    'name=10.96.0.1:80/TCP',
    'name=10.244.0.5',
  ]) {
    assert.equal(isWanted(query), true, query);
  }
  for (const query of [
    'namespace=other',
    'client=10.1.0.1',
    'client=10.1.0.9:4000',
    'client=10.2.0.0/16',
    'endpoint=10.244.0.50',
    'pod=x2x9k',
    'pod=other/web-7d4b9c5f6d-x2x9k',
    'protocol=udp',
    'state=TIME_WAIT',
    'name=10.1.0.99',
    'name=10.96.0.1:8080',
  ]) {
    assert.equal(isWanted(query), false, query);
  }
  assert.equal(isWanted('name=shop/web', false), false);
});

test('a flow without an endpoint is not at any', () => {
  const parameters = new URLSearchParams('endpoint=10.244.0.5');
  const filter = flowFilter(
    readFlowQuestion((name) => parameters.get(name)),
    () => true,
  );
  assert.equal(filter({ ...flow, endpoint: null }, plan), false);
});

test('questions about flows and traffic that make no sense name the field and the value', () => {
  const refused = (query: string, message: RegExp) =>
    assert.throws(
      () => isWanted(query),
      (error) => error instanceof QuestionError && message.test(error.message),
    );
  refused('protocol=icmp', /protocol "ICMP" is none of TCP, UDP, SCTP/);
  refused('state=open', /state "OPEN" is none of SYN_SENT, /);
  refused('client=web', /client "web" is no address, address with port, or range/);
  refused('endpoint=10.244.0.5:99999', /endpoint "10\.244\.0\.5:99999" is no address/);
  assert.equal(readGrouping(null), 'service');
  assert.equal(readGrouping('client'), 'client');
  assert.throws(() => readGrouping('node'), /by "node" is none of service, endpoint, client/);
});
