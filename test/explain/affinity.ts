import assert from 'node:assert/strict';
import { families, joinHostPort } from '../../src/model/ip.ts';
import { paced } from '../cluster/lab/pace.ts';
import { addressBooks } from '../contract/address-book.ts';
import type { Landscape } from '../contract/landscape.ts';
import { type NumberedService, podPort, servicePortOf } from '../contract/objects.ts';
import type { TestPacket } from './packets.ts';
import { predict } from './prediction.ts';

const PATIENCE_MS = paced(5_000);

/** Connects from a client to a service with affinity, and checks that explain then names the endpoint and the time left. */
export async function checkAffinity(landscape: Landscape, { n, spec }: NumberedService): Promise<void> {
  const { affinitySeconds = 0 } = spec;
  for (const family of families) {
    const { hosts, crowd, service } = addressBooks[family];
    const packet = (source: string): TestPacket => {
      const destination = service(n).clusterIP;
      return { family, host: 'outside', source, destination, port: servicePortOf(spec), transport: 'tcp' };
    };
    const client = packet(crowd(3));
    const { destination: address, port, source } = client;
    const question = { transport: 'tcp', address, port, source, timeoutMs: PATIENCE_MS } as const;
    const first = await landscape.host('outside').ask(question);
    assert.equal(first.kind, 'answered');
    const by = first.kind === 'answered' ? hosts[first.by as keyof typeof hosts] : '';
    const { kernel, differences } = await predict(client);
    assert.deepEqual(differences, []);
    assert.equal(kernel?.bound?.endpoint, joinHostPort(by, podPort), kernel?.evidence.join('\n'));
    const left = kernel?.bound?.secondsLeft ?? 0;
    assert.ok(left <= affinitySeconds && left > affinitySeconds - 60, `${left} s`);
    assert.equal((await predict(packet(crowd(4)))).kernel?.bound, undefined);
  }
}
