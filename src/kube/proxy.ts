import { cidrContains, isLoopback, parseCIDR, parseIP } from '../model/ip.ts';
import { urlOf } from './cluster-access.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** The proxy for a server by HTTP_PROXY, HTTPS_PROXY and NO_PROXY (or in lower case); undefined for none. */
export function proxyFromEnv(server: URL, env: Env): URL | undefined {
  const name = server.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = env[name] || env[name.toLowerCase()] || '';
  if (text === '' || isExempt(server, env.NO_PROXY || env.no_proxy || '')) return undefined;
  return urlOf(text.includes('://') ? text : `http://${text}`, name);
}

/** Whether NO_PROXY covers a server. Entries are domains, addresses, CIDRs, each with an optional port, or `*`. */
function isExempt(server: URL, noProxy: string): boolean {
  const host = server.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const ip = parseIP(host);
  if (host === 'localhost' || (ip && isLoopback(ip))) return true;
  return noProxy.split(',').some((raw) => {
    const entry = raw.trim().toLowerCase();
    if (entry === '') return false;
    if (entry === '*') return true;
    const cidr = parseCIDR(entry);
    if (cidr) return ip !== undefined && cidrContains(cidr, ip);
    const [, name = '', port] =
      /^\[?(.*?)\]?(?::([0-9]+))?$/.exec(isBareIPv6(entry) ? `[${entry}]` : entry) ?? [];
    if (port !== undefined && port !== portOf(server)) return false;
    if (name.startsWith('.')) return host.endsWith(name);
    const domain = name.replace(/^\*\./, '');
    return host === domain || (ip === undefined && host.endsWith(`.${domain}`));
  });
}

function isBareIPv6(entry: string): boolean {
  return parseIP(entry)?.family === 'IPv6';
}

export function portOf(url: URL): string {
  return url.port || (url.protocol === 'https:' ? '443' : '80');
}
