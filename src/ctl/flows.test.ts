import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { RecordedTerminal } from '../../test/ctl/terminal.ts';
import { flowEvent, flowItem, flowList, TrafficServer } from '../../test/ctl/traffic-server.ts';
import { eventually } from '../../test/eventually.ts';
import type { FlowEvent, FlowList } from '../inspect/traffic-api.ts';

const dns = {
  family: 'IPv6',
  protocol: 'UDP',
  frontend: '[fd00:96::a]:53',
  service: 'kube-system/kube-dns:dns/UDP',
  endpoint: '[fd00:10:244:1::5]:53',
  state: 'UNREPLIED',
  pod: null,
  ageSeconds: 0.2,
  bytesToEndpoint: null,
  bytesToClient: null,
} as const;

describe('kube-proxyctl flows', () => {
  const server = new TrafficServer();

  before(() => server.listen());
  after(() => server.close());
  beforeEach(() => {
    server.asked.length = 0;
    server.services = ['shop/web:http/TCP'];
    server.flows = flowList([flowItem('10.244.2.9:40002'), flowItem('[fd00:10:244:2::9]:53124', dns)]);
  });

  const flows = (args: string, columns?: number) => server.run('flows', args, columns);

  test('in a pipe shows every flow, by Service', async () => {
    const { text, exitCode } = await flows('');
    assert.equal(
      text.stdout,
      `CLIENT                    FRONTEND         SERVICE PORT                  ENDPOINT               POD                   PROTOCOL  STATE        AGE    BYTES
[fd00:10:244:2::9]:53124  [fd00:96::a]:53  kube-system/kube-dns:dns/UDP  [fd00:10:244:1::5]:53  -                     UDP       UNREPLIED    200ms  -
10.244.2.9:40002          10.96.0.10:80    shop/web:http/TCP             10.244.1.5:8080        web-7d4b9c5f6d-x2x9k  TCP       ESTABLISHED  1m15s  22k
`,
    );
    assert.deepEqual([text.stderr, exitCode], ['', 0]);
  });

  test('fits a terminal of 80 columns and names the columns left out, and fits one of 200', async () => {
    for (const columns of [80, 200]) {
      const { text } = await flows('', columns);
      for (const line of text.stdout.split('\n')) assert.ok(line.length <= columns, line);
      assert.match(text.stdout, /10\.244\.2\.9:40002 .*10\.244\.1\.5:8080 .*ESTABLISHED/);
      if (columns === 80)
        assert.match(text.stdout, /\(-o wide also shows FRONTEND, POD, PROTOCOL, AGE, BYTES\)/);
      else assert.doesNotMatch(text.stdout, /…|also shows/);
    }
  });

  test('shows which flows are on the fast path', async () => {
    server.flows = flowList([flowItem('10.244.2.9:40002', { onFastPath: true })]);
    assert.match((await flows('')).text.stdout, / ESTABLISHED, fast path +1m15s /);
  });

  test('passes on what to look for', async () => {
    await flows(
      'web -n shop --client 10.0.0.1 --endpoint 10.244.1.5:8080 --pod web-1 --protocol tcp --state syn_sent',
    );
    assert.deepEqual(server.asked, [
      'flows?name=web&namespace=shop&client=10.0.0.1&endpoint=10.244.1.5%3A8080&pod=web-1&protocol=TCP&state=SYN_SENT',
    ]);
  });

  test('has the forms of the other lists', async () => {
    assert.equal((JSON.parse((await flows('-o json')).text.stdout) as FlowList).items.length, 2);
    assert.equal((await flows('-o name')).text.stdout, 'kube-system/kube-dns:dns/UDP\nshop/web:http/TCP\n');
    assert.match((await flows('-o yaml')).text.stdout, /^kind: FlowList$/m);
    assert.match((await flows('-o wide')).text.stdout, /BYTES IN +BYTES OUT +PACKETS IN +PACKETS OUT$/m);
  });

  test('says so when there is no flow, no such Service, or no answer about a family', async () => {
    server.flows = flowList([], {
      families: [
        { family: 'IPv4', error: null },
        { family: 'IPv6', error: 'not now' },
      ],
    });
    const quiet = await flows('');
    assert.deepEqual([quiet.text.stderr, quiet.exitCode], ['IPv6: not now\nThere is no such flow now.\n', 0]);
    server.services = [];
    const unknown = await flows('shop/wbe');
    assert.deepEqual(
      [unknown.text.stderr, unknown.exitCode],
      ['Error: no service port is called "shop/wbe"\n', 1],
    );
    assert.deepEqual((await flows('shop/wbe -w')).text.stderr, unknown.text.stderr);
    // The address may be that of a client, of which nothing is known.
    assert.equal((await flows('10.244.7.7')).exitCode, 0);
    server.flows = flowList([], { families: [{ family: 'IPv4', error: 'needs CAP_NET_ADMIN' }] });
    const refused = await flows('');
    assert.deepEqual([refused.text.stderr, refused.exitCode], ['Error: needs CAP_NET_ADMIN\n', 1]);
  });

  /** Follows until all events were shown. */
  async function follow(
    events: readonly FlowEvent[],
    args = '',
    columns?: number,
  ): Promise<RecordedTerminal> {
    const terminal = new RecordedTerminal(columns);
    const ended = terminal.run(`flows -w --server ${server.url} --count ${events.length} ${args}`.trim());
    await eventually('somebody watches', async () => server.watchers === 1);
    for (const event of events) server.send(`${JSON.stringify(event)}\n`);
    await ended;
    await eventually('nobody watches', async () => server.watchers === 0);
    return terminal;
  }

  const opened = flowEvent('Opened', flowItem('10.244.2.9:40002', { state: 'SYN_SENT', ageSeconds: 0 }));
  const ended = flowEvent('Ended', flowItem('10.244.2.9:40002', { state: 'TIME_WAIT' }));
  const rejected = flowEvent(
    'Rejected',
    flowItem('10.244.2.9:40003', { endpoint: null, state: 'UNKNOWN' }),
    'shop/web:http/TCP has no ready endpoint',
  );
  const lost: FlowEvent = { ...flowEvent('Lost', null), count: 31 };
  const noTimes = (text: string) => text.replaceAll(/^\d\d:\d\d:\d\d/gm, 'hh:mm:ss');

  test('-w shows a line for each event, and the reason of a refusal', async () => {
    const { text, exitCode } = await follow([opened, ended, rejected, lost]);
    assert.equal(
      noTimes(text.stdout),
      `TIME      EVENT     CLIENT                FRONTEND           SERVICE PORT                ENDPOINT             POD                       PROTOCOL  STATE        AGE    BYTES
hh:mm:ss  Opened    10.244.2.9:40002      10.96.0.10:80      shop/web:http/TCP           10.244.1.5:8080      web-7d4b9c5f6d-x2x9k      TCP       SYN_SENT     0ms    22k
hh:mm:ss  Ended     10.244.2.9:40002      10.96.0.10:80      shop/web:http/TCP           10.244.1.5:8080      web-7d4b9c5f6d-x2x9k      TCP       TIME_WAIT    1m15s  22k
hh:mm:ss  Rejected  10.244.2.9:40003      10.96.0.10:80      shop/web:http/TCP  shop/web:http/TCP has no ready endpoint
hh:mm:ss  The kernel lost 31 events about connections: they came too fast.
`,
    );
    assert.deepEqual([text.stderr, exitCode], ['', 0]);
    assert.deepEqual(server.asked, ['flows?watch=true']);
  });

  test('-w fits a terminal of 80 columns, except for reasons, and one of 200', async () => {
    for (const columns of [80, 200]) {
      const { text } = await follow([opened, ended, rejected], '', columns);
      const lines = text.stdout.split('\n').filter((line) => !line.includes('Rejected'));
      for (const line of lines) assert.ok(line.length <= columns, line);
      assert.match(text.stdout, /Ended .*10\.244\.2\.9:40002 .*10\.244\.1\.5:8080/);
      assert.match(text.stdout, /Rejected .* has no ready endpoint\n/);
      assert.equal(text.stdout.match(/^TIME/gm)?.length, 1);
    }
  });

  test('-w prints the headings again when a cell needs more room', async () => {
    const long = flowEvent('Opened', flowItem('[fd00:10:244:2:1234:5678:9abc:def0]:40002'));
    const { text } = await follow([opened, long]);
    assert.match(text.stdout, / \[fd00:10:244:2:1234:5678:9abc:def0\]:40002 /);
    assert.doesNotMatch(text.stdout, /…/);
  });

  test('-w -o json is an object per line, -o name a name per event', async () => {
    const { text } = await follow([opened, lost], '-o json');
    const lines = text.stdout.trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line): unknown => JSON.parse(line)),
      [opened, lost],
    );
    assert.equal((await follow([opened], '-o name')).text.stdout, 'shop/web:http/TCP\n');
  });

  test('-w shows no control characters of an answer', async () => {
    const evil = '\u001b[2J\u0007\u009b1A';
    const events = [
      flowEvent('Opened', flowItem(`1${evil}`)),
      flowEvent('Dropped', flowItem('10.0.0.1:1'), `because${evil}`),
    ];
    for (const args of ['', '-o json']) {
      const { text } = await follow(events, args);
      assert.doesNotMatch(text.stdout.replaceAll('\n', ''), /\p{Cc}/u);
    }
  });

  test('-w goes on after the proxy has restarted, with a line for the end and one for the return', async () => {
    const terminal = new RecordedTerminal();
    const done = terminal.run(`flows -w --server ${server.url} --count 2 --interval 10ms -o json`);
    await eventually('somebody watches', async () => server.watchers === 1);
    server.send(`${JSON.stringify(opened)}\n`);
    await eventually('the first event is shown', async () => terminal.text.stdout !== '');
    await server.close();
    await eventually('the end is told', async () => terminal.text.stderr !== '');
    await server.listen();
    await eventually('somebody watches again', async () => server.watchers === 1);
    server.send(`${JSON.stringify(ended)}\n`);
    await done;
    assert.match(
      terminal.text.stderr,
      /^The stream of events ended: .*; trying again\nThe proxy answers again\. Events since then follow; earlier ones are missing\.\n$/,
    );
    assert.equal(terminal.text.stdout.trimEnd().split('\n').length, 2);
    assert.equal(terminal.exitCode, 0);
  });

  test('-w fails at once when no proxy answers', async () => {
    const terminal = new RecordedTerminal();
    await terminal.run('flows -w --server http://127.0.0.1:1');
    assert.match(
      terminal.text.stderr,
      /^Error: cannot ask kube-proxy at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/,
    );
    assert.equal(terminal.exitCode, 1);
  });
});
