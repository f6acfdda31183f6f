import assert from 'node:assert/strict';
import { after, before, beforeEach, suite, test } from 'node:test';
import { type ConntrackClient, openConntrackClient } from '../../src/kernel/ct/client.ts';
import type { Flow, FlowFilter } from '../../src/kernel/ct/flow.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { formatIP } from '../../src/model/ip.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';

const UDP = 17;

inNamespace(import.meta.url, () => {
  let client: ConntrackClient;
  let received = 0;

  before(async () => {
    const onDatagram = (direction: string, bytes: Uint8Array) => {
      if (direction === 'receive') received += bytes.length;
    };
    client = openConntrackClient(await loadLibc(), { clock: systemClock, onDatagram });
  });
  after(() => client.close());
  beforeEach(() => {
    sh('conntrack -F; conntrack -F -f ipv6');
    for (let i = 1; i <= 3; i++) {
      const ports = `--sport ${1000 + i} --dport 53 --reply-port-src 5353 --reply-port-dst ${1000 + i}`;
      sh(
        `conntrack -I -p udp -s 10.0.0.${i} -d 10.96.0.10 -r 10.244.0.5 -q 10.0.0.${i} ${ports} -t 100 -m ${i}`,
      );
    }
    sh('conntrack -I -p tcp -s 10.0.0.9 -d 10.96.0.10 --sport 1000 --dport 53 --state ESTABLISHED -t 100');
    sh('conntrack -I -p udp -s fd00::1 -d fd00::2 --sport 1000 --dport 53 -t 100');
  });

  const list = async (filter: FlowFilter) => {
    const flows: Flow[] = [];
    await client.forEachFlow(filter, { flow: (flow) => flows.push(flow), restart: () => flows.splice(0) });
    return flows;
  };

  suite('flows', () => {
    test('flows are decoded with the service address and the address of the endpoint', async () => {
      const [flow] = (await list({ family: 'IPv4', protocol: UDP, mark: { value: 2, mask: 0xff } })) ?? [];
      assert.ok(flow);
      const ip = (bytes: Uint8Array) => formatIP({ family: 'IPv4', bytes });
      assert.equal(`${ip(flow.original.source)}:${flow.original.sourcePort}`, '10.0.0.2:1002');
      assert.equal(`${ip(flow.original.destination)}:${flow.original.destinationPort}`, '10.96.0.10:53');
      assert.equal(`${ip(flow.reply.source)}:${flow.reply.sourcePort}`, '10.244.0.5:5353');
      assert.deepEqual([flow.protocol, flow.mark, flow.zone], [UDP, 2, 0]);
    });

    test('flows are filtered by family, protocol, port, address and mark', async () => {
      const count = async (filter: FlowFilter) => (await list(filter)).length;
      assert.equal(await count({ family: 'IPv4' }), 4);
      assert.equal(await count({ family: 'IPv6' }), 1);
      assert.equal(await count({ family: 'IPv4', protocol: UDP }), 3);
      assert.equal(await count({ family: 'IPv4', protocol: UDP, originalDestinationPort: 53 }), 3);
      assert.equal(await count({ family: 'IPv4', protocol: UDP, originalDestinationPort: 54 }), 0);
      assert.equal(await count({ family: 'IPv4', originalDestination: Uint8Array.of(10, 96, 0, 10) }), 4);
      assert.equal(await count({ family: 'IPv4', originalDestination: Uint8Array.of(10, 96, 0, 11) }), 0);
      assert.equal(await count({ family: 'IPv4', mark: { value: 1, mask: 1 } }), 2);
    });

    test('flows are filtered by IPv6 addresses', async () => {
      sh('conntrack -I -p udp -s fd00::1 -d fd00::3 --sport 1001 --dport 53 -t 100');
      const to = (last: number) => Uint8Array.of(0xfd, ...new Array<number>(14).fill(0), last);
      for (const [last, expected] of [
        [2, 1],
        [3, 1],
        [4, 0],
      ] as const) {
        const filter: FlowFilter = { family: 'IPv6', protocol: UDP, originalDestination: to(last) };
        const flows = await list({ ...filter, originalDestinationPort: 53 });
        assert.deepEqual(
          flows.map(({ original }) => original.destination.at(-1)),
          expected ? [last] : [],
        );
        assert.equal((await list(filter)).length, expected);
      }
    });

    test('the kernel does not send flows that a filter excludes', async () => {
      const bytesFor = async (filter: FlowFilter) => {
        received = 0;
        await list(filter);
        return received;
      };
      const end = await bytesFor({ family: 'IPv4', protocol: 99 });
      const udp = await bytesFor({ family: 'IPv4', protocol: UDP });
      const all = await bytesFor({ family: 'IPv4' });
      assert.ok(end < 50 && udp > 300 && all > udp, `${end} ${udp} ${all}`);
    });

    test('flows are deleted; those already gone count as deleted, a successor with another id stays', async () => {
      const flows = await list({ family: 'IPv4', protocol: UDP });
      const [first, ...rest] = flows;
      assert.ok(first);
      assert.deepEqual(await client.deleteFlows([{ ...first, id: first.id ^ 1 }]), {
        deleted: 1,
        failures: [],
      });
      assert.equal((await list({ family: 'IPv4', protocol: UDP })).length, 3);
      assert.deepEqual(await client.deleteFlows(rest), { deleted: 2, failures: [] });
      assert.deepEqual(await client.deleteFlows(flows), { deleted: 3, failures: [] });
      assert.equal((await list({ family: 'IPv4' })).length, 1);
      await client.deleteFlows(await list({ family: 'IPv6' }));
      assert.equal((await list({ family: 'IPv6' })).length, 0);
    });
  });
});
