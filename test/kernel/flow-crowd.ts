/** A busy node's UDP flows. Started as a program, it puts them into the connection tracking table. */
import { type FlowToMake, makeFlows } from './flow-maker.ts';

export const services = 400;
const flowsPerService = 450;
const passingBy = 20_000;
export const total = services * flowsPerService + passingBy;
/** One of this many flows of a service goes to a removed endpoint. */
const staleEvery = 5;
export const stale = (services * flowsPerService) / staleEvery;

export const clusterIPOf = (service: number): string => `10.96.${service >> 8}.${service & 255}`;
export const endpointOf = (service: number): string => `10.244.${service >> 8}.${service & 255}`;
export const flowsLeftOf = flowsPerService - flowsPerService / staleEvery;

function* crowd(): Generator<FlowToMake> {
  for (let service = 0; service < services; service++) {
    for (let i = 0; i < flowsPerService; i++) {
      const answerer = [10, i % staleEvery === 0 ? 245 : 244, service >> 8, service & 255];
      yield flow(i, [10, 96, service >> 8, service & 255], answerer);
    }
  }
  for (let i = 0; i < passingBy; i++) {
    const server = [192, 0, 2, i & 255];
    yield flow(i, server, server);
  }
}

function flow(client: number, destination: readonly number[], answerer: readonly number[]): FlowToMake {
  return {
    client: Uint8Array.of(10, 1, client >> 8, client & 255),
    clientPort: 20_000,
    destination: Uint8Array.from(destination),
    destinationPort: 53,
    answerer: Uint8Array.from(answerer),
    answererPort: 53,
  };
}

if (import.meta.main) await makeFlows(crowd());
