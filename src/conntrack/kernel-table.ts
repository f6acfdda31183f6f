import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { Flow } from '../kernel/ct/flow.ts';
import { type Family, formatIP } from '../model/ip.ts';
import type { FlowTable } from './reconciler.ts';
import type { UDPFlow } from './udp-targets.ts';

const UDP = 17;

/** A flow as the reconciler judges it, with the entry that the kernel knows it by. */
export interface KernelFlow extends UDPFlow {
  readonly entry: Flow;
}

/** The UDP entries of one family of the kernel's connection tracking table. */
export function kernelFlowTable(client: ConntrackClient, family: Family): FlowTable<KernelFlow> {
  return {
    udpFlows: ({ flow, restart }) =>
      client.forEachFlow({ family, protocol: UDP }, { flow: (entry) => flow(kernelFlow(entry)), restart }),
    async remove(flows) {
      const { deleted, failures } = await client.deleteFlows(flows.map(({ entry }) => entry));
      const [first] = failures;
      if (first) {
        throw new Error(
          `${failures.length} of ${flows.length} entries could not be deleted: ${first.error.message}`,
          {
            cause: first.error,
          },
        );
      }
      return deleted;
    },
  };
}

function kernelFlow(entry: Flow): KernelFlow {
  const { family, original, reply } = entry;
  return {
    destinationIP: formatIP({ family, bytes: original.destination }),
    destinationPort: original.destinationPort,
    answererIP: formatIP({ family, bytes: reply.source }),
    answererPort: reply.sourcePort,
    entry,
  };
}
