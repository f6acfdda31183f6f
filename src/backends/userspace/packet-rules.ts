import {
  atSelectedAddresses,
  checksSourceRanges,
  choiceByPlan,
  type DirectService,
  type PacketRules,
  refusesServiceRanges,
} from '../packet-rules.ts';

/**
 * How userspace mode treats packets, with this scheduler; empty for the default one. `direct`: what listeners alone serve
 * while packets cannot be captured.
 */
export function packetRules(
  scheduler: string,
  direct: () => DirectService | undefined = () => undefined,
): PacketRules {
  return {
    ...(scheduler !== '' && { scheduler }),
    direct,
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
