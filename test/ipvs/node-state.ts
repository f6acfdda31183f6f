import { runInNode } from '../contract/node-commands.ts';

/** What the node's kernel holds of ipvs mode, as ipvsadm, ipset and ip show it. */

/** Real servers and their weights of a TCP service at `address:port`; undefined when there is no such service. */
export async function realServers(place: string): Promise<Readonly<Record<string, number>> | undefined> {
  const lines = (await runInNode('ipvsadm', '-Sn')).split('\n').map((line) => line.trim());
  if (!lines.some((line) => line.startsWith(`-A -t ${place} `))) return undefined;
  const reals = lines.flatMap((line) => {
    const [, at, weight] = /^-a -t (\S+) -r (\S+) -m -w (\d+)$/.exec(line)?.slice(1) ?? [];
    return line.startsWith(`-a -t ${place} `) && at ? [[at, Number(weight)] as const] : [];
  });
  return Object.fromEntries(reals);
}

/** The schedulers of the virtual servers. */
export async function schedulers(): Promise<readonly string[]> {
  const all = (await runInNode('ipvsadm', '-Sn')).matchAll(/^-A .* -s (\S+)/gm);
  return [...new Set([...all].map(([, scheduler = '']) => scheduler))].sort();
}

/** Connections that a TCP service had since it was made. */
export async function connectionsSince(place: string): Promise<number> {
  const [, count] =
    new RegExp(`^TCP +${place} +(\\d+)`, 'm').exec(await runInNode('ipvsadm', '-Ln', '--stats', '--exact')) ??
    [];
  return Number(count);
}

/** Addresses of the device, without those that belong to its link; none when there is no device. */
export async function boundAddresses(): Promise<readonly string[]> {
  const shown = (await runInNode('ip', '-o', 'address', 'show')).matchAll(
    /^\d+: kube-ipvs0 +inet6? (\S+)\/\d+ scope global/gm,
  );
  return [...shown].map(([, address = '']) => address).sort();
}

export async function setEntries(name: string): Promise<readonly string[]> {
  const saved = (await runInNode('ipset', 'save', name)).matchAll(/^add \S+ (\S+)/gm);
  return [...saved].map(([, entry = '']) => entry).sort();
}

/** Everything that a sync could change, without counters, sorted. */
export async function snapshot(): Promise<string> {
  const parts = await Promise.all([
    runInNode('ipvsadm', '-Sn'),
    runInNode('ipset', 'save'),
    runInNode('iptables-save'),
    runInNode('ip6tables-save'),
  ]);
  const lines = parts.flatMap((part) => part.split('\n')).filter((line) => !line.startsWith('#'));
  return [...lines.map((line) => line.replace(/\[\d+:\d+\]/, '')), ...(await boundAddresses())]
    .sort()
    .join('\n');
}
