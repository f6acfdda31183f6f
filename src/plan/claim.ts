/**
 * How a service port signs its claim to a frontend that another one may claim as well: a cluster IP comes before an
 * external address, then the smaller service port key.
 */
export function frontendClaim(key: string, isClusterIP: boolean): string {
  return `${isClusterIP ? 0 : 1}${key}`;
}

/** The service port key in such a claim. */
export function claimingKey(claim: string): string {
  return claim.slice(1);
}
