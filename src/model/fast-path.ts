/** Which connections may skip the rules: those of Services, or all that the node forwards. */
export const fastPathScopes = ['off', 'services', 'all'] as const;

export type FastPathScope = (typeof fastPathScopes)[number];

export interface FastPathSettings {
  readonly scope: Exclude<FastPathScope, 'off'>;
  /** Packets of a connection, in both directions, that take the usual way first. */
  readonly after: number;
}
