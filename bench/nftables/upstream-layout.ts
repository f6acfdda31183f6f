import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endpointIP, endpointPort, nodeIP, type Size, serviceIP, serviceName } from '../programs/cluster.ts';
import type { Cpu } from '../programs/program.ts';

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const frontend = 'ip daddr . meta l4proto . th dport';

/**
 * Upstream v1.37's ruleset for the services of the benchmark, in nft's language: a chain per service and an unnamed map
 * of its endpoints.
 */
export function upstreamRuleset(size: Size, protocol: 'tcp' | 'udp'): string {
  const services = Array.from({ length: size.services }, (_, i) => i);
  const chain = (i: number): string => chainName(i, protocol);
  return [
    'table ip kube-proxy {',
    set('set hairpin-connections', 'type ipv4_addr . ipv4_addr . inet_proto . inet_service'),
    set('set cluster-ips', 'type ipv4_addr', services.map(serviceIP)),
    set('set nodeport-ips', 'type ipv4_addr', [nodeIP]),
    ...['no-endpoint-services', 'firewall-ips'].map((name) => set(`map ${name}`, frontendMap)),
    ...['no-endpoint-nodeports', 'service-nodeports'].map((name) => set(`map ${name}`, nodePortMap)),
    ...services.map((i) => `chain ${chain(i)} {\n${dnat(i, size, protocol)}\n}`),
    set(
      'map service-ips',
      frontendMap,
      services.map((i) => `${serviceIP(i)} . ${protocol} . 80 : goto ${chain(i)}`),
    ),
    ...fixedChains,
    '}',
    '',
  ].join('\n');
}

/** Loads a ruleset with `nft`. Returns the seconds and the CPU time that this took. */
export function loadRuleset(text: string): { readonly seconds: number; readonly cpu: Cpu } {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
  try {
    const file = join(directory, 'ruleset.nft');
    writeFileSync(file, text);
    const begun = performance.now();
    const result = spawnSync('sh', ['-c', 'nft -f "$0" && times', file], { encoding: 'utf8' });
    const seconds = (performance.now() - begun) / 1000;
    if (result.status !== 0) throw new Error(`nft -f: ${result.stderr.slice(0, 500)}`);
    return { seconds, cpu: childTimes(result.stdout) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Parses the second line of `times`, about the shell's children: `0m1.230000s 0m4.560000s`. */
function childTimes(text: string): Cpu {
  const [own = 0, kernel = 0] = [...(text.split('\n')[1] ?? '').matchAll(/(\d+)m([\d.]+)s/g)].map(
    ([, minutes, seconds]) => (Number(minutes) * 60 + Number(seconds)) * 1000,
  );
  return { own, kernel };
}

const frontendMap = 'type ipv4_addr . inet_proto . inet_service : verdict';
const nodePortMap = 'type inet_proto . inet_service : verdict';

function set(name: string, type: string, elements: readonly string[] = []): string {
  const list = elements.length > 0 ? `\nelements = { ${elements.join(',\n')} }` : '';
  return `${name} {\n${type}${list}\n}`;
}

function dnat(index: number, size: Size, protocol: string): string {
  const targets = Array.from(
    { length: size.endpoints },
    (_, i) => `${i} : ${endpointIP(index, i, size)} . ${endpointPort}`,
  );
  return `meta l4proto ${protocol} dnat ip to numgen random mod ${size.endpoints} map { ${targets.join(', ')} }`;
}

function chainName(index: number, protocol: string): string {
  const { namespace, name } = serviceName(index);
  const full = `${namespace}/${name}/${protocol}/http`;
  const hash = createHash('sha256').update(full).digest();
  const letters = Array.from({ length: 8 }, (_, i) => {
    const bits = (((hash[(i * 5) >> 3] ?? 0) << 8) | (hash[((i * 5) >> 3) + 1] ?? 0)) >> (11 - ((i * 5) & 7));
    return base32[bits & 31];
  });
  return `service-${letters.join('')}-${full}`;
}

const fixedChains = [
  chain(
    'nodeport-endpoints-check',
    'ip daddr @nodeport-ips meta l4proto . th dport vmap @no-endpoint-nodeports',
  ),
  chain('service-endpoints-check', `${frontend} vmap @no-endpoint-services`),
  chain('firewall-check', `${frontend} vmap @firewall-ips`),
  chain(
    'services',
    `${frontend} vmap @service-ips`,
    'ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports',
  ),
  chain(
    'masquerading',
    'meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000 masquerade fully-random',
    'ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random',
  ),
  chain('cluster-ips-check', 'ip daddr @cluster-ips reject'),
  chain('filter-prerouting-pre-dnat', hook('filter', 'prerouting', -110), 'ct state new jump firewall-check'),
  chain('filter-output-pre-dnat', hook('filter', 'output', -110), 'ct state new jump firewall-check'),
  chain(
    'filter-input',
    hook('filter', 'input', 0),
    'ct state new jump nodeport-endpoints-check',
    'ct state new jump service-endpoints-check',
  ),
  ...['forward', 'output'].map((name) =>
    chain(
      `filter-${name}`,
      hook('filter', name, 0),
      'ct state new jump service-endpoints-check',
      'ct state new jump cluster-ips-check',
    ),
  ),
  chain('nat-prerouting', hook('nat', 'prerouting', -100), 'jump services'),
  chain('nat-output', hook('nat', 'output', -100), 'jump services'),
  chain('nat-postrouting', hook('nat', 'postrouting', 100), 'jump masquerading'),
];

function chain(name: string, ...rules: readonly string[]): string {
  return `chain ${name} {\n${rules.join('\n')}\n}`;
}

function hook(type: string, name: string, priority: number): string {
  return `type ${type} hook ${name} priority ${priority};`;
}
