import type { AgentOptions, ClientRequestArgs } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import tls from 'node:tls';
import { http } from '../lib/http.ts';
import { joinHostPort } from '../model/ip.ts';
import { portOf } from './proxy.ts';

/** How connections through a proxy are made. */
export interface Tunnel {
  readonly proxy: URL;
  /** Whether the tunnel carries HTTP without TLS. */
  readonly plain: boolean;
  readonly serverName: string | undefined;
  /** For the server, and for the proxy when its URL is https. */
  readonly secureContext: tls.SecureContext;
  readonly rejectUnauthorized: boolean;
}

type ConnectOptions = ClientRequestArgs & { servername?: string };

const timeoutMs = 30_000;

/** An agent that makes every connection through an HTTP proxy. */
export class TunnelAgent extends https.Agent {
  readonly #tunnel: Tunnel;
  readonly #keepAliveMs: number;
  // Node rejects a request whose protocol differs from its agent's.
  readonly protocol: string;

  constructor(options: AgentOptions & { readonly keepAliveMsecs: number }, tunnel: Tunnel) {
    super(options);
    this.#tunnel = tunnel;
    this.#keepAliveMs = options.keepAliveMsecs;
    this.protocol = tunnel.plain ? 'http:' : 'https:';
  }

  override createConnection(
    options: ConnectOptions,
    callback: (error: Error | null, socket: Duplex) => void = () => {},
  ): undefined {
    this.#connect(options).then(
      (socket) => callback(null, socket),
      // Node ignores the stream when there is an error.
      (error: Error) => callback(error, new Duplex()),
    );
  }

  async #connect(options: ConnectOptions): Promise<Duplex> {
    const { plain, serverName, secureContext, rejectUnauthorized } = this.#tunnel;
    const host = options.host ?? 'localhost';
    const socket = await openTunnel(this.#tunnel, joinHostPort(host, options.port ?? 443));
    socket.setKeepAlive(true, this.#keepAliveMs);
    if (plain) return socket;
    const servername = serverName ?? options.servername ?? '';
    return tls.connect({ socket, host, servername, secureContext, rejectUnauthorized });
  }
}

/** Opens a connection to `target` (host:port) with CONNECT. */
function openTunnel({ proxy, secureContext, rejectUnauthorized }: Tunnel, target: string): Promise<Socket> {
  const { request } = proxy.protocol === 'https:' ? https : http;
  const headers: Record<string, string> = { host: target };
  if (proxy.username !== '') {
    const login = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
    headers['proxy-authorization'] = `Basic ${Buffer.from(login).toString('base64')}`;
  }
  return new Promise((resolve, reject) => {
    const options: https.RequestOptions & { secureContext: tls.SecureContext } = {
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: portOf(proxy),
      method: 'CONNECT',
      path: target,
      headers,
      agent: false,
      timeout: timeoutMs,
      secureContext,
      rejectUnauthorized,
    };
    const connect = request(options);
    const fail = (why: string) => {
      connect.destroy();
      reject(new Error(`proxy ${proxy.host}: ${why}`));
    };
    connect.once('connect', (answer, socket, head) => {
      if (answer.statusCode !== 200) {
        socket.destroy();
        return fail(`refused to connect to ${target} with status ${answer.statusCode}`);
      }
      connect.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    connect.once('response', (answer) => fail(`answered CONNECT with status ${answer.statusCode}`));
    connect.once('timeout', () => fail(`no answer within ${timeoutMs / 1000} s`));
    connect.once('error', (error) => fail(error.message));
    connect.end();
  });
}
