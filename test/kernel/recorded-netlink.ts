import { hostLittleEndian } from '../../src/native/byte-order.ts';
import { FakeNetlink } from './fake-netlink.ts';

/** A kernel that answers as one did when it was listened to. */
export interface RecordedNetlink {
  readonly kernel: FakeNetlink;
  /** Requests of the recording that have not been made. */
  readonly remaining: () => number;
}

interface Exchange {
  readonly request: string;
  readonly replies: readonly Uint8Array[];
}

const portOffset = 12;

/**
 * Plays a recording back: lines `> hex` are datagrams that were sent, lines `< hex` those that came back. A request
 * that is not the next one of the recording, byte by byte, is an error.
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
