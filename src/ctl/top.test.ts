import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { RecordedTerminal } from '../../test/ctl/terminal.ts';
import { none, TrafficServer, trafficItem, trafficReport } from '../../test/ctl/traffic-server.ts';
import type { RatesReport } from './traffic-rates.ts';

const web = 'shop/web:http/TCP';
const later = { time: '2026-01-01T00:00:02Z' };

describe('kube-proxyctl top', () => {
  const server = new TrafficServer();

  before(() => server.listen());
  after(() => server.close());
  beforeEach(() => {
    server.asked.length = 0;
    server.services = [web];
    server.readings = [
      trafficReport([
        trafficItem(web, { opened: 4 }),
        trafficItem('shop/a-service-with-a-long-name:metrics/TCP'),
      ]),
      trafficReport(
        [
          trafficItem('shop/a-service-with-a-long-name:metrics/TCP', { open: 3 }),
          trafficItem(web, {
            opened: 2504,
            open: 17,
            bytesToEndpoint: 3_000_000,
            bytesToClient: 90_000_000,
            failed: { ...none, rejected: 12, reset: 1 },
          }),
        ],
        later,
      ),
    ];
  });

  /** Runs top on a terminal of this width, or in a pipe. */
  const top = (args: string, columns?: number) => server.run('top', `--interval 1ms ${args}`, columns);

  test('in a pipe shows one table with rates, the busiest first', async () => {
    const { text, exitCode } = await top('');
    assert.equal(
      text.stdout,
      `SERVICE PORT                                 FAMILY  NEW/S  OPEN  BYTES IN/S  BYTES OUT/S  NEW   FAILED
shop/web:http/TCP                            IPv4    1.3k   17    1.5M        45M          2.5k  12 rejected, 1 reset
shop/a-service-with-a-long-name:metrics/TCP  IPv4    0      3     0           0            0     -
`,
    );
    assert.equal(exitCode, 0);
    assert.deepEqual(server.asked, ['traffic?by=service', 'traffic?by=service']);
  });

  test('fits a terminal of 80 columns, and of 200', async () => {
    for (const columns of [80, 200]) {
      const { text } = await top('--count 1', columns);
      const screens = text.stdout.split('\u001b[H\u001b[2J').filter(Boolean);
      // The first one has no rates yet.
      assert.equal(screens.length, 2);
      assert.match(screens[0] ?? '', /^shop\/web:http\/TCP .* - /m);
      for (const line of text.stdout.replaceAll('\u001b[H\u001b[2J', '').split('\n')) {
        assert.ok(line.length <= columns, line);
      }
      assert.match(
        screens[1] ?? '',
        /^\d\d:\d\d:\d\d, nftables mode, by service, sorted by connections, since \d\d:\d\d:\d\d$/m,
      );
      assert.match(screens[1] ?? '', /^shop\/web:http\/TCP .*1\.3k +17 /m);
      server.readings.unshift(trafficReport([trafficItem(web, { opened: 4 })]));
    }
  });

  test('shows no more lines than the terminal has', async () => {
    const many = Array.from({ length: 100 }, (_, i) => trafficItem(`shop/s${i}/TCP`));
    server.readings = [trafficReport(many, { lostEvents: 7 })];
    const terminal = new RecordedTerminal(200, 24);
    await terminal.run(`top --server ${server.url} --interval 1ms --count 1`);
    for (const screen of terminal.text.stdout.split('\u001b[H\u001b[2J').filter(Boolean)) {
      assert.ok(screen.split('\n').length <= 24, screen);
      assert.match(screen, /lost 7 events/);
    }
  });

  test('with a NAME shows its endpoints, with the expected and the measured share', async () => {
    const endpoint = (last: number, opened: number) =>
      trafficItem(web, {
        endpoint: `10.244.0.${last}:8080`,
        pod: `shop/web-${last}`,
        zone: 'za',
        opened,
        expectedShare: 0.5,
      });
    server.readings = [
      trafficReport([endpoint(1, 0), endpoint(2, 0)], { by: 'endpoint' }),
      trafficReport([endpoint(1, 900), endpoint(2, 100)], { by: 'endpoint', ...later }),
    ];
    const { text } = await top('shop/web -n shop');
    assert.equal(
      text.stdout,
      `SERVICE PORT       FAMILY  ENDPOINT         POD    ZONE  EXPECTED  MEASURED     NEW/S  OPEN  BYTES IN/S  BYTES OUT/S  NEW  FAILED
shop/web:http/TCP  IPv4    10.244.0.1:8080  web-1  za    50.0 %    90.0 % high  450    0     0           0            900  -
shop/web:http/TCP  IPv4    10.244.0.2:8080  web-2  za    50.0 %    10.0 % low   50     0     0           0            100  -
`,
    );
    assert.equal(server.asked[0], 'traffic?by=endpoint&name=shop%2Fweb&namespace=shop');
  });

  test('--by client names the clients, and -o name prints only those', async () => {
    const clients = [trafficItem(web, { client: '10.244.1.7', opened: 3 })];
    server.readings = [
      trafficReport(clients, { by: 'client' }),
      trafficReport(clients, { by: 'client', ...later }),
    ];
    assert.equal((await top('shop/web --by client -o name')).text.stdout, '10.244.1.7\n');
    assert.equal(server.asked[0], 'traffic?by=client&name=shop%2Fweb');
    assert.match((await top('shop/web --by client')).text.stdout, /CLIENT .*\n.* 10\.244\.1\.7 /);
  });

  test('-o json has totals and rates of one reading', async () => {
    const { text } = await top('-o json');
    const report = JSON.parse(text.stdout) as RatesReport;
    assert.deepEqual([report.kind, report.seconds, report.mode], ['TrafficRates', 2, 'nftables']);
    assert.deepEqual([report.items[0]?.opened, report.items[0]?.perSecond.opened], [2504, 1250]);
    assert.match((await top('-o yaml')).text.stdout, /^kind: TrafficRates$/m);
    assert.match((await top('-o wide')).text.stdout, /PACKETS IN +PACKETS OUT +FAILED\/S +FAILED$/m);
  });

  test('tells lost events, items left out, a family without figures, and what is not counted, in a line each', async () => {
    const families = [
      { family: 'IPv4', error: null, warning: 'packets are not counted' },
      { family: 'IPv6', error: 'the kernel has no connection tracking', warning: null },
    ] as const;
    server.readings = [trafficReport([], { lostEvents: 1, leftOut: 20, families })];
    const lines = (await top('')).text.stdout.trimEnd().split('\n');
    assert.deepEqual(lines.slice(1), [
      'The kernel lost 1 event about connections: the figures are too low.',
      'Not shown: 20 further items; there are too many.',
      'IPv6: the kernel has no connection tracking',
      'IPv4: packets are not counted',
    ]);
  });

  test('fails with the reason when there are no figures at all, or no such Service', async () => {
    server.readings = [
      trafficReport([], { families: [{ family: 'IPv4', error: 'needs CAP_NET_ADMIN', warning: null }] }),
    ];
    const refused = await top('');
    assert.deepEqual([refused.text.stderr, refused.exitCode], ['Error: needs CAP_NET_ADMIN\n', 1]);
    server.readings = [trafficReport([])];
    server.services = [];
    const unknown = await top('shop/wbe');
    assert.deepEqual(
      [unknown.text.stderr, unknown.exitCode],
      ['Error: no service port is called "shop/wbe"\n', 1],
    );
  });

  test('control characters in an answer do not reach the terminal', async () => {
    server.readings = [trafficReport([trafficItem('shop/\u001b]0;evil\u0007\u009b2Jweb/TCP')])];
    for (const args of ['', '-o wide', '-o name', '-o json']) {
      const { text } = await top(args);
      assert.match(text.stdout, /evil/);
      assert.doesNotMatch(text.stdout.replaceAll('\n', ''), /\p{Cc}/u);
    }
  });
});
