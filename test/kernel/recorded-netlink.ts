import { hostLittleEndian } from '../../src/native/byte-order.ts';
import { FakeNetlink } from './fake-netlink.ts';

/** A kernel that replays recorded answers. */
export interface RecordedNetlink {
  readonly kernel: FakeNetlink;
  /** Number of recorded requests that have not been made. */
  readonly remaining: () => number;
}

interface Exchange {
  readonly request: string;
  readonly replies: readonly Uint8Array[];
}

const portOffset = 12;

/**
 * Replays a recording: lines `> hex` are datagrams that were sent, lines `< hex` the answers. A request that differs
 * from the next recorded one in any byte is an error.
 */
export function recordedNetlink(recording: string): RecordedNetlink {
  const exchanges = exchangesOf(recording);
  let next = 0;
  const [first] = exchanges[0]?.replies ?? [];
  const port = first && new DataView(first.buffer, first.byteOffset).getUint32(portOffset, hostLittleEndian);
  const kernel = new FakeNetlink((_, { sent }) => {
    const request = Buffer.from(sent.at(-1) ?? []).toString('hex');
    const expected = exchanges[next++];
    if (request === expected?.request) return expected.replies;
    throw new Error(
      `request ${next} of the recording: sent ${request}, recorded ${expected?.request ?? 'none'}`,
    );
  }, port);
  return { kernel, remaining: () => exchanges.length - next };
}

function exchangesOf(recording: string): Exchange[] {
  const exchanges: { request: string; replies: Uint8Array[] }[] = [];
  for (const line of recording.split('\n')) {
    const hex = line.slice(2);
    if (line.startsWith('> ')) exchanges.push({ request: hex, replies: [] });
    else if (line.startsWith('< ')) exchanges.at(-1)?.replies.push(Uint8Array.from(Buffer.from(hex, 'hex')));
  }
  return exchanges;
}
