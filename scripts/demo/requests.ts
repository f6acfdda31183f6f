import { createSocket } from 'node:dgram';
import { get } from 'node:http';
import { isIPv6 } from 'node:net';
import { formatIP, splitIPPort } from '../../src/model/ip.ts';

const requestsPerRound = 6;
const timeoutMs = 500;

/** Which endpoints answered a few new connections, and how often: `127.0.1.11 ×2  127.0.1.12 ×4`. */
export async function askRepeatedly(address: string, protocol = 'TCP'): Promise<string> {
  const answers = new Map<string, number>();
  const asked = Array.from({ length: requestsPerRound }, () =>
    ask(address, protocol).catch((error: NodeJS.ErrnoException) => error.code ?? error.message),
  );
  for (const answer of await Promise.all(asked)) answers.set(answer, (answers.get(answer) ?? 0) + 1);
  const counted = [...answers].sort(([a], [b]) => (a < b ? -1 : 1));
  return counted.map(([answer, count]) => `${answer} ×${count}`).join('  ');
}

/** The endpoint that answers a new connection to `host:port`. Rejects without an answer. */
export function ask(address: string, protocol = 'TCP'): Promise<string> {
  return protocol === 'UDP' ? askUDP(address) : textAt(`http://${address}/`);
}

/** The body of the answer at a URL, with any status. Rejects without an answer. */
export function textAt(url: string): Promise<string> {
  return new Promise((settle, reject) => {
    const request = get(url, { agent: false, timeout: timeoutMs }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => settle(body)).on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('no answer'))).on('error', reject);
  });
}

function askUDP(address: string): Promise<string> {
  const destination = splitIPPort(address);
  if (!destination) return Promise.reject(new Error(`${address} is no address`));
  const host = formatIP(destination.ip);
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
  const answer = new Promise<string>((settle, reject) => {
    const timer = setTimeout(() => reject(new Error('no answer')), timeoutMs);
    socket.on('error', reject).on('message', (message) => settle(message.toString()));
    socket.on('close', () => clearTimeout(timer));
    // A connected socket learns that the port is unreachable.
    socket.connect(destination.port, host, (error?: Error) => (error ? reject(error) : socket.send('who?')));
  });
  return answer.finally(() => socket.close());
}
