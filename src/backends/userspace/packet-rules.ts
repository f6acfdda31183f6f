import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceByPlan,
  type PacketRules,
  refusesServiceRanges,
} from '../packet-rules.ts';

/** How userspace mode treats packets, with this scheduler; empty for the default one. */
export function packetRules(scheduler: string): PacketRules {
  return {
    ...(scheduler !== '' && { scheduler }),
    nodePort: atSelectedAddresses,
    unmatched: refusesServiceRanges,
    checksSource: checksSourceRanges,
    choose: choiceByPlan,
    masquerade: () => ({
      masquerade: true,
      reason:
        'The endpoint sees an address of this node: in userspace mode this process makes the connection to it.',
    }),
    keepsSourceForOwnEndpoints: false,
    isHairpin: () => false,
  };
}
