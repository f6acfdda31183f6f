import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { affinityReport, TrafficServer } from '../../test/ctl/traffic-server.ts';
import type { AffinityItem, AffinityReport } from '../inspect/traffic-api.ts';

const bound: AffinityItem = {
  service: 'shop/web:http/TCP',
  family: 'IPv4',
  client: '10.244.2.9',
  endpoint: '10.244.1.5:8080',
  pod: 'shop/web-0',
  secondsLeft: 10_740,
  frontend: null,
};
const six: AffinityItem = {
  ...bound,
  family: 'IPv6',
  client: 'fd00:10:244:2::9',
  endpoint: '[fd00:10:244:1::5]:8080',
  pod: null,
  secondsLeft: 59,
};

describe('kube-proxyctl affinity', () => {
  const server = new TrafficServer();

  before(() => server.listen());
  after(() => server.close());
  beforeEach(() => {
    server.asked.length = 0;
    server.services = ['shop/web:http/TCP'];
    server.affinitySeconds = 10_800;
    server.affinity = affinityReport([bound, six]);
  });

  const affinity = (args: string, columns?: number) => server.run('affinity', args, columns);

  test('shows the endpoint and the time left of each client', async () => {
    const { text, exitCode } = await affinity('shop/web');
    assert.equal(
      text.stdout,
      `SERVICE PORT       CLIENT            ENDPOINT                 POD    TIME LEFT
shop/web:http/TCP  10.244.2.9        10.244.1.5:8080          web-0  2h59m
shop/web:http/TCP  fd00:10:244:2::9  [fd00:10:244:1::5]:8080  -      59s
`,
    );
    assert.deepEqual([text.stderr, exitCode], ['', 0]);
  });

  test('shows the frontend where a binding holds for one frontend only', async () => {
    server.affinity = affinityReport([{ ...bound, frontend: '10.96.0.10:80' }]);
    assert.match((await affinity('')).text.stdout, /TIME LEFT +FRONTEND\n.* 2h59m +10\.96\.0\.10:80\n/);
  });

  test('passes on what to look for, and says how many are not shown', async () => {
    server.affinity = affinityReport([bound], { leftOut: 41 });
    const { text } = await affinity('web -n shop --client 10.0.0.0/8 --endpoint 10.244.1.5:8080 --limit 1');
    assert.deepEqual(server.asked, [
      'affinity?name=web&namespace=shop&client=10.0.0.0%2F8&endpoint=10.244.1.5%3A8080&limit=1',
    ]);
    assert.equal(text.stderr, 'Not shown: 41 clients with less time left; see --limit.\n');
  });

  test('has the forms of the other lists', async () => {
    assert.deepEqual((JSON.parse((await affinity('-o json')).text.stdout) as AffinityReport).items, [
      bound,
      six,
    ]);
    assert.equal((await affinity('-o name')).text.stdout, 'shop/web:http/TCP\n');
    assert.match((await affinity('-o wide')).text.stdout, /TIME LEFT +FAMILY$/m);
  });

  test('says why there is no client', async () => {
    server.affinity = affinityReport([]);
    assert.equal((await affinity('shop/web')).text.stderr, 'No such client is bound now.\n');
    server.affinitySeconds = 0;
    const without = 'client affinity (sessionAffinity: ClientIP).\n';
    assert.equal((await affinity('shop/web')).text.stderr, `shop/web has no ${without}`);
    assert.equal((await affinity('')).text.stderr, `No Service has ${without}`);
    server.services = [];
    const unknown = await affinity('shop/wbe');
    assert.deepEqual(
      [unknown.text.stderr, unknown.exitCode],
      ['Error: no service port is called "shop/wbe"\n', 1],
    );
    server.affinity = affinityReport([], { families: [{ family: 'IPv4', error: 'needs CAP_NET_ADMIN' }] });
    const refused = await affinity('');
    assert.deepEqual([refused.text.stderr, refused.exitCode], ['Error: needs CAP_NET_ADMIN\n', 1]);
  });
});
