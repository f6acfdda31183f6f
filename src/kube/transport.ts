import type { Agent } from 'node:http';
import https from 'node:https';
import tls from 'node:tls';
import { http } from '../lib/http.ts';
import type { Logger } from '../obs/log.ts';
import type { ClusterAccess, PemSource } from './cluster-access.ts';
import type { Credential } from './credentials.ts';
import { RotatedFile } from './rotated-file.ts';

/**
 * The first keep-alive probe follows after this long without traffic, then ten more a second apart. So a watch, which
 * sends nothing, notices within half a minute that its peer is gone.
 */
const keepAliveMs = 15_000;

type Reader = () => Promise<string>;

/** PEM texts for new connections. */
interface Material {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/**
 * Connections to the API server. CA, certificate and key are read before every request. After a change new connections
 * use the new ones; requests under way are not interrupted.
 */
export class Transport {
  readonly #access: ClusterAccess;
  readonly #logger: Logger;
  readonly #readers: { readonly [K in keyof Material]: Reader | undefined };
  readonly #retired = new Set<Agent>();
  #current: { readonly material: Material; readonly agent: Agent } | undefined;
  #reported: string | undefined;

  constructor(access: ClusterAccess, logger: Logger) {
    this.#access = access;
    this.#logger = logger;
    const reader = (source: PemSource | undefined): Reader | undefined => {
      if (source === undefined) return undefined;
      if ('text' in source) return () => Promise.resolve(source.text);
      const file = new RotatedFile(source.file, logger);
      return () => file.read();
    };
    this.#readers = { ca: reader(access.ca), cert: reader(access.clientCert), key: reader(access.clientKey) };
  }

  /** The agent for a request with `credential`. Rejects when the first certificate or key is unusable. */
  async agentFor(credential: Credential): Promise<Agent> {
    const material = await this.#material(credential);
    if (this.#current !== undefined && isSame(this.#current.material, material)) return this.#current.agent;
    try {
      const agent = await this.#createAgent(material);
      if (this.#current !== undefined) this.#retire(this.#current.agent);
      this.#current = { material, agent };
      this.#reported = undefined;
      return agent;
    } catch (error) {
      // Certificate and key are replaced one after the other and may not match for a moment.
      if (this.#current === undefined) throw error;
      this.#report(error);
      return this.#current.agent;
    }
  }

  close(): void {
    this.#current?.agent.destroy();
    for (const agent of this.#retired) agent.destroy();
    this.#retired.clear();
  }

  async #material(credential: Credential): Promise<Material> {
    const { ca, cert, key } = this.#readers;
    return {
      ca: await ca?.(),
      cert: credential.certificate?.cert ?? (await cert?.()),
      key: credential.certificate?.key ?? (await key?.()),
    };
  }

  async #createAgent(material: Material): Promise<Agent> {
    const options = { keepAlive: true, keepAliveMsecs: keepAliveMs };
    const { proxy, serverName, skipVerify, server } = this.#access;
    const plain = server.protocol === 'http:';
    if (plain && proxy === undefined) return new http.Agent(options);
    const secure = { secureContext: secureContextOf(material), rejectUnauthorized: !skipVerify };
    if (proxy !== undefined) {
      const { TunnelAgent } = await import('./tunnel-agent.ts');
      return new TunnelAgent(options, { proxy, plain, serverName, ...secure });
    }
    return new https.Agent({
      ...options,
      ...secure,
      ...(serverName !== undefined && { servername: serverName }),
    });
  }

  #retire(agent: Agent): void {
    agent.maxFreeSockets = 0;
    for (const sockets of Object.values(agent.freeSockets))
      for (const socket of sockets ?? []) socket.destroy();
    for (const old of this.#retired) if (Object.keys(old.sockets).length === 0) this.#retired.delete(old);
    this.#retired.add(agent);
  }

  #report(error: unknown): void {
    const text = String(error);
    if (this.#reported === text) return;
    this.#reported = text;
    this.#logger.error(error, 'New TLS certificate, key or CA is unusable; using the previous ones');
  }
}

function isSame(a: Material, b: Material): boolean {
  return a.ca === b.ca && a.cert === b.cert && a.key === b.key;
}

function secureContextOf({ ca, cert, key }: Material): tls.SecureContext {
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE')) {
    throw new Error('the certificate authority holds no PEM certificate');
  }
  // Without a CA in the configuration, trust the system's, which Node ignores by default.
  const roots = ca ?? [...tls.getCACertificates('default'), ...tls.getCACertificates('system')];
  return tls.createSecureContext({
    ca: roots,
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  });
}
