import { NETLINK_NETFILTER, NLM_F_CREATE } from '../../src/kernel/netlink/constants.ts';
import { NetlinkSocket } from '../../src/kernel/netlink/socket.ts';
import { openTransport } from '../../src/kernel/netlink/transport.ts';
import type { MessageWriter } from '../../src/kernel/netlink/writer.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';

/** An IPv4 flow of a client to a service: the service address and the endpoint that answers. */
export interface FlowToMake {
  readonly client: Uint8Array;
  readonly clientPort: number;
  readonly destination: Uint8Array;
  readonly destinationPort: number;
  readonly answerer: Uint8Array;
  readonly answererPort: number;
  /** IP number; UDP when absent. */
  readonly protocol?: number;
}

const AF_INET = 2;
const UDP = 17;
const CT_NEW = 1 << 8;
const [TUPLE_ORIG, TUPLE_REPLY, TIMEOUT] = [1, 2, 7];
const lifetimeSeconds = 3600;
/** Their acknowledgements must fit into the receive buffer. */
const atOnce = 512;

/** Puts flows into the connection tracking table of this network namespace, as fast as the kernel takes them. */
export async function makeFlows(flows: Iterable<FlowToMake>): Promise<void> {
  const socket = new NetlinkSocket(openTransport(await loadLibc(), NETLINK_NETFILTER), {
    clock: systemClock,
  });
  const send = async (some: readonly FlowToMake[]): Promise<void> => {
    const requests = some.map((flow) => ({
      type: CT_NEW,
      flags: NLM_F_CREATE,
      name: 'add conntrack entry',
      write: (writer: MessageWriter) => writeFlow(writer, flow),
    }));
    for (const error of await socket.requestAll(requests)) if (error) throw error;
  };
  try {
    let batch: FlowToMake[] = [];
    for (const flow of flows) {
      batch.push(flow);
      if (batch.length < atOnce) continue;
      await send(batch);
      batch = [];
    }
    await send(batch);
  } finally {
    socket.close();
  }
}

function writeFlow(writer: MessageWriter, flow: FlowToMake): void {
  const { client, clientPort, destination, destinationPort, answerer, answererPort, protocol = UDP } = flow;
  writer.nfgenmsg(AF_INET);
  writeTuple(writer, TUPLE_ORIG, protocol, client, destination, clientPort, destinationPort);
  writeTuple(writer, TUPLE_REPLY, protocol, answerer, client, answererPort, clientPort);
  writer.u32Be(TIMEOUT, lifetimeSeconds);
}

function writeTuple(
  writer: MessageWriter,
  type: number,
  protocol: number,
  source: Uint8Array,
  destination: Uint8Array,
  sourcePort: number,
  destinationPort: number,
): void {
  const tuple = writer.beginNested(type);
  const ip = writer.beginNested(1);
  writer.data(1, source);
  writer.data(2, destination);
  writer.endNested(ip);
  const proto = writer.beginNested(2);
  writer.u8(1, protocol);
  writer.u16Be(2, sourcePort);
  writer.u16Be(3, destinationPort);
  writer.endNested(proto);
  writer.endNested(tuple);
}
