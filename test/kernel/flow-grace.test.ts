/** Requests in flight when their endpoint leaves. The clock of the reconciler moves only when a test says so. */
import assert from 'node:assert/strict';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { kernelFlowTable } from '../../src/conntrack/kernel-table.ts';
import { ConntrackReconciler } from '../../src/conntrack/reconciler.ts';
import { openConntrackClient } from '../../src/kernel/ct/client.ts';
import { type KernelInterfaces, openKernel } from '../../src/kernel/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { silentLogger } from '../../src/obs/log.ts';
import type { FamilyProxier } from '../../src/proxier/family-proxier.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { eventually } from '../eventually.ts';
import { FakeClock } from '../fake-clock.ts';
import { nftablesIn, proxierOf, tableFactsHere, udpService, udpSlice } from './udp-proxier.ts';

const [a, b, clusterIP] = ['10.244.1.1', '10.244.1.2', '10.96.0.10'] as const;

/** A server that keeps requests until it is told to answer. */
class SlowServer {
  readonly #socket = createSocket('udp4');
  readonly #peers: RemoteInfo[] = [];
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
    this.#socket.on('message', (_, peer) => this.#peers.push(peer));
  }

  async listen(address: string): Promise<void> {
    this.#socket.bind(53, address);
    await once(this.#socket, 'listening');
  }

  get hasRequest(): boolean {
    return this.#peers.length > 0;
  }

  answer(): void {
    for (const { port, address } of this.#peers.splice(0)) this.#socket.send(this.#name, port, address);
  }

  close(): void {
    this.#socket.close();
  }
}

inNamespace(import.meta.url, () => {
  const clock = new FakeClock();
  const servers = { a: new SlowServer('a'), b: new SlowServer('b') };
  let kernel: KernelInterfaces;
  let proxier: FamilyProxier;
  let passes = 0;

  before(async () => {
    sh(`ip addr add ${a}/32 dev lo; ip addr add ${b}/32 dev lo; ip route add 10.96.0.0/16 dev lo`);
    await servers.a.listen(a);
    await servers.b.listen(b);
    kernel = await openKernel(systemClock);
    const flows = openConntrackClient(await loadLibc(), { clock: systemClock });
    const reconciler = new ConntrackReconciler({
      family: 'IPv4',
      table: kernelFlowTable(flows, 'IPv4', tableFactsHere),
      ownAddresses: async () => new Set(),
      duration: { observe: () => passes++ },
      deleted: { inc: () => {} },
      clock,
      logger: silentLogger,
    });
    proxier = proxierOf(nftablesIn(kernel), reconciler);
    proxier.updateService(undefined, udpService('dns', clusterIP));
    proxier.updateSlice(udpSlice('dns', [a]), false);
    proxier.start();
    proxier.synced('services');
    proxier.synced('endpointSlices');
    await proxier.firstSync;
    await eventually('the pass after the first sync', () => passes > 0);
  });
  after(async () => {
    await proxier?.stop();
    kernel?.close();
    for (const server of Object.values(servers)) server.close();
  });

  /** A socket that asks the Service, and what it hears. */
  async function client(): Promise<{ socket: Socket; heard: string[] }> {
    const socket = createSocket('udp4');
    const heard: string[] = [];
    socket.on('message', (text) => heard.push(text.toString()));
    socket.connect(53, clusterIP);
    await once(socket, 'connect');
    // A rejection is no end: the next datagram may be served.
    socket.on('error', () => {});
    return { socket, heard };
  }

  /** Makes a change and waits for the pass over the flows that follows. */
  async function changed(change: () => void): Promise<void> {
    const before = passes;
    change();
    await eventually('a pass over the flows', () => passes > before);
  }

  async function graceEnds(): Promise<void> {
    const before = passes;
    await clock.advance(1000);
    await eventually('the pass after the grace', () => passes > before);
  }

  test('an answer of an endpoint that just left arrives, and then its flows go', async () => {
    const { socket, heard } = await client();
    try {
      socket.send('first');
      await eventually('a has the request', () => servers.a.hasRequest);
      await changed(() => proxier.updateSlice(udpSlice('dns', [b]), false));
      servers.a.answer();
      await eventually('the answer of a arrives', () => heard.includes('a'));
      await graceEnds();
      socket.send('second');
      await eventually('b has the next request of the same flow', () => servers.b.hasRequest);
      servers.b.answer();
    } finally {
      socket.close();
    }
  });

  test('an answer of a deleted Service arrives, and then its flows go', async () => {
    const { socket, heard } = await client();
    try {
      socket.send('first');
      await eventually('b has the request', () => servers.b.hasRequest);
      await changed(() => proxier.updateService(udpService('dns', clusterIP), undefined));
      servers.b.answer();
      await eventually('the answer of b arrives', () => heard.includes('b'));
      await graceEnds();
      socket.send('second');
      await changed(() => proxier.updateService(undefined, udpService('dns', clusterIP)));
      assert.equal(servers.b.hasRequest, false);
    } finally {
      socket.close();
    }
  });

  test('a flow that was quiet for some time goes at once', async () => {
    const { socket, heard } = await client();
    const timeout = '/proc/sys/net/netfilter/nf_conntrack_udp_timeout';
    try {
      await changed(() => proxier.updateSlice(udpSlice('dns', [a]), false));
      await graceEnds();
      socket.send('first');
      await eventually('a has the request', () => servers.a.hasRequest);
      servers.a.answer();
      await eventually('the answer of a arrives', () => heard.includes('a'));
      // As if the last packet had come a minute ago.
      writeFileSync(timeout, String(Number(readFileSync(timeout, 'utf8')) + 60));
      await changed(() => proxier.updateSlice(udpSlice('dns', [b]), false));
      socket.send('second');
      await eventually('b has the next request of the same flow', () => servers.b.hasRequest);
    } finally {
      socket.close();
    }
  });
});
