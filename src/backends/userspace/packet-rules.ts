import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceByPlan,
  type DirectService,
  masqueradeByRules,
  type PacketRules,
  refusesServiceRanges,
} from '../packet-rules.ts';

/**
 * How userspace mode treats packets, with this scheduler; empty for the default one. `direct`: what listeners alone serve
 * while packets cannot be captured. `keepsSource`: whether endpoints see the address of clients that the plan does not
 * masquerade.
 */
export function packetRules(
  scheduler: string,
  direct: () => DirectService | undefined = () => undefined,
  keepsSource: () => boolean = () => true,
): PacketRules {
  return {
    ...(scheduler !== '' && { scheduler }),
    direct,
    nodePort: atSelectedAddresses,
    unmatched: refusesServiceRanges,
    checksSource: checksSourceRanges,
    choose: choiceByPlan,
    masquerade: (...packet) => (keepsSource() ? masqueradeByRules(...packet) : byProcess),
    keepsSourceForOwnEndpoints: false,
    isHairpin: ({ ip }, { source }) => keepsSource() && ip === source,
  };
}

const byProcess = {
  masquerade: true,
  reason:
    'The endpoint sees an address of this node: this process makes the connection to it, and cannot use the address of the client.',
} as const;
