export const probeNames = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const;

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

/** The fields of a DaemonSet that tests look at. */
export interface DaemonSet {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: PodSpec;
    };
  };
}

interface PodSpec {
  readonly hostNetwork: boolean;
  readonly serviceAccountName: string;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
}

interface Container extends Partial<Readonly<Record<(typeof probeNames)[number], Probe>>> {
  readonly image: string;
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly command: readonly string[];
  readonly securityContext: {
    readonly privileged: boolean;
    readonly capabilities?: { readonly add: readonly string[]; readonly drop: readonly string[] };
  };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}
