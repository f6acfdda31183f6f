/** kube-proxyctl top and flows: a running proxy in nftables mode, and connections through it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { RatesReport } from '../../src/ctl/traffic-rates.ts';
import type { StatusReport } from '../../src/inspect/api.ts';
import type { FlowEvent, FlowList } from '../../src/inspect/traffic-api.ts';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { apiService, apiSlice, podName } from '../cluster/objects.ts';
import { Site } from '../program/started.ts';
import { complaint, eventuallyReported, printed } from './ctl.ts';
import { RunningCtl } from './running-ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const METRICS = 'http://127.0.0.1:10249';
const web = 'shop/web:http/TCP';
const lonely = 'shop/lonely:http/TCP';
const endpoints = ['10.244.0.5', '10.244.0.6'];

async function json<T>(args: string): Promise<T> {
  return JSON.parse(await printed(`${args} -o json`)) as T;
}

/** A connection to the Service that stays open. */
async function open(): Promise<Socket> {
  const socket = connect(80, '10.96.0.1');
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(paced(10_000)) });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return socket;
}

async function openAndClose(): Promise<void> {
  const socket = await open();
  socket.end();
  await once(socket.resume(), 'close');
}

/** The connections that were counted so far. The proxy looks once a second, so it waits until nothing is added. */
async function settledCount(): Promise<number> {
  let opened = 0;
  await eventuallyReported('no connection is added', async () => {
    const [item] = (await json<RatesReport>('top shop/web --by service --interval 1200ms')).items;
    opened = item?.opened ?? 0;
    return item?.perSecond.opened === 0;
  });
  return opened;
}

for (const mode of ['nftables', 'userspace'])
  describe(`kube-proxyctl top and flows in ${mode} mode`, { skip: skip ?? false }, () => {
    let site: Site;
    const pods: Server[] = [];

    before(async () => {
      for (const ip of ['192.0.2.1', ...endpoints]) sh('ip', 'addr', 'replace', `${ip}/32`, 'dev', 'lo');
      sh('ip', 'route', 'replace', '10.96.0.0/16', 'dev', 'lo', 'src', '192.0.2.1');
      // The kernel forgets a connection that was reset after this many seconds; usually 10.
      sh('sysctl', '-qw', 'net.netfilter.nf_conntrack_tcp_timeout_close=1');
      for (const ip of endpoints) {
        const pod = createServer((socket) => socket.on('error', () => {}).pipe(socket));
        pods.push(pod);
        await once(pod.listen(8080, ip), 'listening');
      }
      site = await Site.open();
      site.api.put('services', apiService('web'));
      site.api.put('endpointSlices', apiSlice('web', endpoints));
      site.api.put('services', apiService('lonely', 80, { clusterIP: '10.96.0.2' }));
      const proxy = await site.start(site.writeConfig({ mode, metricsBindAddress: '127.0.0.1:10249' }));
      await proxy.serves(METRICS);
      await eventuallyReported('the first sync', async () =>
        (await json<StatusReport>('status')).families.every(({ syncs }) => syncs > 0),
      );
    });
    after(async () => {
      for (const pod of pods) pod.close();
      await site.close();
    });

    it('top counts every connection, by Service and by endpoint', async () => {
      // While somebody follows flows, counting does not begin again.
      const follower = new RunningCtl(['flows', '-w']);
      try {
        await eventuallyReported('somebody follows', async () => {
          await openAndClose();
          return follower.stdout.includes('Opened');
        });
        const before = await settledCount();
        for (let i = 0; i < 20; i++) await openAndClose();
        await eventuallyReported(
          '20 connections are counted',
          async () => (await settledCount()) === before + 20,
        );
        const { items } = await json<RatesReport>('top shop/web --interval 1ms');
        assert.deepEqual(
          items
            .map(({ endpoint, pod, zone, expectedShare }) => [endpoint, pod, zone, expectedShare])
            .toSorted(),
          endpoints.map((ip) => [`${ip}:8080`, `shop/${podName('web', ip)}`, 'za', 0.5]),
        );
        assert.equal(
          items.reduce((sum, { opened }) => sum + opened, 0),
          before + 20,
        );
        for (const { opened, measuredShare } of items) assert.equal(measuredShare, opened / (before + 20));
        assert.match(
          await printed('top --by client --interval 1ms'),
          /^shop\/web:http\/TCP +IPv4 +192\.0\.2\.1 /m,
        );
      } finally {
        await follower.interrupt();
      }
      assert.match(
        await printed('top shop/web --interval 1ms'),
        /10\.244\.0\.5:8080 +web-\S+-5 +za +50\.0 % +\d+\.\d % /,
      );
      assert.match(await complaint('top shop/wbe'), /no service port is called "shop\/wbe"/);
    });

    it('top and flows show the connections that are open', async () => {
      const sockets = [await open(), await open(), await open()];
      try {
        const clients = sockets.map(({ localPort }) => `192.0.2.1:${localPort}`).toSorted();
        const flows = async (args: string) => {
          const { items } = await json<FlowList>(`flows ${args} --state ESTABLISHED`);
          return items.map(({ client }) => client).toSorted();
        };
        await eventuallyReported('three flows', async () => {
          assert.deepEqual(await flows('shop/web'), clients);
          return true;
        });
        assert.deepEqual(await flows('10.96.0.1:80 --protocol tcp'), clients);
        assert.deepEqual(await flows(`--client ${clients[0]}`), [clients[0]]);
        assert.deepEqual(await flows('-n blog'), []);
        assert.deepEqual(await flows('--endpoint 10.244.0.0/24'), clients);
        const byPod = await Promise.all(endpoints.map((ip) => flows(`--pod ${podName('web', ip)}`)));
        assert.deepEqual(byPod.flat().toSorted(), clients);
        await eventuallyReported('three open connections', async () => {
          const [item] = (await json<RatesReport>('top shop/web --by service --interval 1ms')).items;
          return item?.open === 3;
        });
        assert.match(
          await printed('flows shop/web'),
          new RegExp(`^${clients[0]} +10\\.96\\.0\\.1:80 +${web} `, 'm'),
        );
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });

    it('flows -w follows openings, ends and refusals until it is interrupted', async () => {
      const refused: Socket[] = [];
      const follower = new RunningCtl(['flows', '-w', '-o', 'json']);
      try {
        const events = () => follower.lines().map((line) => JSON.parse(line) as FlowEvent);
        const has = (wanted: FlowEvent['event'], service: string) =>
          events().some(({ event, flow }) => event === wanted && flow?.service === service);
        const hasPod = ({ event, flow }: FlowEvent) =>
          event === 'Opened' && flow?.pod?.startsWith('shop/web-');
        await eventuallyReported('an opening with its pod, and an end', async () => {
          const socket = await open();
          // A reset ends the flow at once.
          socket.resetAndDestroy();
          // This one reaches its endpoint in every mode before it ends.
          await openAndClose();
          return has('Opened', web) && has('Ended', web) && events().some(hasPod);
        });
        await eventuallyReported('a refusal', async () => {
          // The event counts, not whether the answer of the kernel finds its way back.
          refused.push(connect(80, '10.96.0.2').on('error', () => {}));
          return has('Rejected', lonely);
        });
        const refusal = events().find(({ event }) => event === 'Rejected');
        assert.match(refusal?.reason ?? '', /no endpoints/i);
        assert.equal(refusal?.flow?.endpoint, null);
      } finally {
        for (const socket of refused) socket.destroy();
        await follower.interrupt();
      }
      assert.ok((await json<RatesReport>('top shop/lonely --by service --interval 1ms')).items[0]);
    });

    it('flows -w goes on when the proxy restarts', async () => {
      const follower = new RunningCtl(['flows', '-w', '--interval', '100ms']);
      try {
        const isFollowing = async () => {
          await openAndClose();
          return follower.stdout.includes('Opened');
        };
        await eventuallyReported('an opening', isFollowing);
        await site.stopAll();
        await eventuallyReported('the end of the stream', async () =>
          follower.stderr.includes('trying again'),
        );
        await site.start(site.path('config.yaml'));
        await eventuallyReported('the return', async () =>
          follower.stderr.includes('The proxy answers again'),
        );
        const seen = follower.stdout.length;
        await eventuallyReported('another opening', async () => {
          // Until the first sync, nobody may listen.
          await openAndClose().catch(() => {});
          return follower.stdout.slice(seen).includes('Opened');
        });
        assert.equal(follower.stderr.match(/trying again/g)?.length, 1);
      } finally {
        await follower.interrupt();
      }
    });

    it('metrics have the fill of the connection table', async () => {
      const metrics = await (await fetch(`${METRICS}/metrics`)).text();
      for (const name of [
        'entries',
        'entries_limit',
        'insert_failed_total',
        'dropped_total',
        'early_dropped_total',
      ])
        assert.match(metrics, new RegExp(`^kubeproxy_ts_conntrack_${name} \\d`, 'm'));
    });
  });
