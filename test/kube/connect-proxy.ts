import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { KeyPair } from '../cluster/apiserver/certificates.ts';

export interface ConnectProxy {
  readonly url: string;
  /** Where clients asked to be connected to. */
  readonly targets: string[];
  /** Proxy-Authorization headers received. */
  readonly logins: (string | undefined)[];
  /** The answer to CONNECT. */
  status: number;
  close(): Promise<void>;
}

/** A CONNECT proxy on loopback. */
export async function startConnectProxy(tls?: KeyPair): Promise<ConnectProxy> {
  const server = tls === undefined ? http.createServer() : https.createServer({ ...tls });
  const proxy = {
    url: '',
    targets: [] as string[],
    logins: [] as (string | undefined)[],
    status: 200,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  server.on('connect', (request, client, head) => {
    proxy.targets.push(request.url ?? '');
    proxy.logins.push(request.headers['proxy-authorization']);
    client.on('error', () => client.destroy());
    if (proxy.status !== 200) {
      client.end(`HTTP/1.1 ${proxy.status} No\r\n\r\n`);
      return;
    }
    const target = new URL(`http://${request.url}`);
    const upstream = connect(Number(target.port), target.hostname.replace(/^\[|\]$/g, ''), () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.write(head);
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.url = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}
