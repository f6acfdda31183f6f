/**
 * Measures the cost of the first packet of a connection in a ruleset. It sends datagrams from an unused port, one to
 * each service, so that each is a new flow.
 */
import { createSocket, type Socket } from 'node:dgram';
import { type Size, serviceIP } from '../programs/cluster.ts';

export interface FlowFigures {
  readonly flowsPerSecond: number;
  /** CPU time per new flow, of the sending process and the kernel. */
  readonly cpuMicros: number;
}

/** Every round adds twice this many flows to the connection table; they expire after half a minute. */
const flowsPerRound = 10_000;
const rounds = 9;
const inFlight = 64;

/** Returns the best of several rounds: a disturbance can only make a round slower. */
export async function measureFlows({ services }: Size): Promise<FlowFigures> {
  const results: FlowFigures[] = [];
  for (let round = 0; round < rounds; round++) results.push(await flowRound(services));
  return {
    flowsPerSecond: Math.max(...results.map((result) => result.flowsPerSecond)),
    cpuMicros: Math.min(...results.map((result) => result.cpuMicros)),
  };
}

async function flowRound(services: number): Promise<FlowFigures> {
  const flowsPerPort = Math.min(services, flowsPerRound);
  const sockets = await Promise.all(
    Array.from({ length: Math.ceil(flowsPerRound / flowsPerPort) }, () => openSocket()),
  );
  const addresses = Array.from({ length: flowsPerPort }, (_, i) => serviceIP(i));
  const cpu = process.cpuUsage();
  const begun = performance.now();
  for (const socket of sockets) await sendToAll(socket, addresses);
  const seconds = (performance.now() - begun) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  for (const socket of sockets) socket.close();
  const flows = sockets.length * flowsPerPort;
  return { flowsPerSecond: flows / seconds, cpuMicros: (user + system) / flows };
}

async function openSocket(): Promise<Socket> {
  // The address is a literal; a resolver call would be most of the cost.
  const socket = createSocket({ type: 'udp4', lookup: (name, _options, done) => done(null, name, 4) });
  // Refusals of earlier packets are reported to the socket.
  socket.on('error', () => undefined);
  // With this synchronous lookup the socket may be bound before `bind` returns.
  await new Promise<void>((bound) => socket.bind(0, bound));
  return socket;
}

function sendToAll(socket: Socket, addresses: readonly string[]): Promise<void> {
  const payload = Buffer.alloc(8);
  return new Promise((resolve) => {
    let next = 0;
    let done = 0;
    const send = (): void => {
      const address = addresses[next++];
      if (address === undefined) return;
      socket.send(payload, 80, address, () => {
        if (++done === addresses.length) resolve();
        else send();
      });
    };
    for (let i = 0; i < inFlight; i++) send();
  });
}
