/** Rule texts that iptables and ipvs mode share. */
import type { LocalDetector } from '../model/local-detector.ts';

/** Masquerades what carries the mark, and takes the mark off, so that the packet is not masqueraded again. */
export function masqueradeMarked(masqueradeBit: number): string[] {
  const mark = markText(masqueradeBit);
  return [
    `-A KUBE-POSTROUTING -m mark ! --mark ${mark}/${mark} -j RETURN`,
    `-A KUBE-POSTROUTING -j MARK --xor-mark ${mark}`,
    '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    `-A KUBE-MARK-MASQ -j MARK --or-mark ${mark}`,
  ];
}

/** Lets service traffic pass where the node's own policy is not to forward. */
export function forwardRules(masqueradeBit: number): string[] {
  const mark = markText(masqueradeBit);
  return [
    `-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark ${mark}/${mark} -j ACCEPT`,
    '-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  ];
}

/** Matches packets from pods of this node, and other packets after `! `; undefined when nothing tells them apart. */
export function podSource(detector: LocalDetector): string | undefined {
  switch (detector.kind) {
    case 'cidr':
      return `-s ${detector.cidr}`;
    case 'interface':
      return `-i ${detector.name}`;
    case 'prefix':
      return `-i ${detector.prefix}+`;
    case 'none':
      return undefined;
  }
}

function markText(bit: number): string {
  // Not a shift: bit 31 would be the sign.
  return `0x${(2 ** bit).toString(16).padStart(8, '0')}`;
}
