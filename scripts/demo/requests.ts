import { get } from 'node:http';

const requestsPerRound = 6;
const timeoutMs = 500;

/** Which endpoints answered a few new connections, and how often: `127.0.1.11 ×2  127.0.1.12 ×4`. */
export async function askRepeatedly(address: string): Promise<string> {
  const answers = new Map<string, number>();
  for (let i = 0; i < requestsPerRound; i++) {
    const answer = await ask(address).catch((error: NodeJS.ErrnoException) => error.code ?? error.message);
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  const counted = [...answers].sort(([a], [b]) => (a < b ? -1 : 1));
  return counted.map(([answer, count]) => `${answer} ×${count}`).join('  ');
}

/** The endpoint that answers a new connection to `host:port`. Rejects without an answer. */
export function ask(address: string): Promise<string> {
  return new Promise((settle, reject) => {
    const request = get(`http://${address}/`, { agent: false, timeout: timeoutMs }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => settle(body)).on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('no answer'))).on('error', reject);
  });
}
