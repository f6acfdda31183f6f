import type { RawObject } from './apiserver/store.ts';

/**
 * Objects with all fields that real controllers and users write, used by kube-proxy or not: owners, labels, managed
 * fields, references to pods, hints. Tests of sizes and costs need them.
 */
export interface FullObjectOptions {
  readonly namespace: string;
  readonly name: string;
  /** Makes the object unlike all others; a counter will do. */
  readonly number: number;
}

export interface FullSliceOptions extends FullObjectOptions {
  readonly addresses: readonly string[];
  /** Counts the changes of the slice. */
  readonly generation?: number;
}

const created = '2026-01-01T00:00:00Z';
const zones = ['eu-central-1a', 'eu-central-1b', 'eu-central-1c'];

/** A Service as a user applies it. */
export function fullService(options: FullObjectOptions, clusterIP: string): RawObject {
  const { namespace, name, number } = options;
  const labels = { app: name, 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'shop' };
  const ports = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }];
  const applied = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { labels, name, namespace },
    spec: { ports },
  };
  return {
    metadata: {
      namespace,
      name,
      uid: uid('5ec0', number),
      creationTimestamp: created,
      labels,
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(applied)}\n` },
      managedFields: [managed('kubectl-client-side-apply', 'v1', serviceFields)],
    },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      selector: { app: name },
      ports,
    },
    status: { loadBalancer: {} },
  };
}

/** An EndpointSlice as the EndpointSlice controller writes it for that Service. */
export function fullSlice(options: FullSliceOptions): RawObject {
  const { namespace, name, number, addresses, generation = 1 } = options;
  const owner = uid('5ec0', number);
  return {
    metadata: {
      namespace,
      name: `${name}-x7k2p`,
      generateName: `${name}-`,
      uid: uid('51ce', number),
      generation,
      creationTimestamp: created,
      labels: {
        app: name,
        'app.kubernetes.io/name': name,
        'app.kubernetes.io/part-of': 'shop',
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': name,
      },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': created },
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Service', name, uid: owner, controller: true, blockOwnerDeletion: true },
      ],
      managedFields: [managed('kube-controller-manager', 'discovery.k8s.io/v1', sliceFields(owner))],
    },
    addressType: 'IPv4',
    endpoints: addresses.map((address, i) => fullEndpoint(options, address, i)),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  };
}

function fullEndpoint({ namespace, name, number }: FullObjectOptions, address: string, i: number): object {
  const zone = zones[i % zones.length];
  return {
    addresses: [address],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `ip-10-0-${number % 250}-${i}.eu-central-1.compute.internal`,
    targetRef: {
      kind: 'Pod',
      namespace,
      name: `${name}-7d4b9c8f6d-${i.toString(36).padStart(5, 'x')}`,
      uid: uid('60d5', number * 1000 + i),
    },
    zone,
    hints: { forZones: [{ name: zone }] },
  };
}

function managed(manager: string, apiVersion: string, fieldsV1: object): object {
  return { manager, operation: 'Update', apiVersion, time: created, fieldsType: 'FieldsV1', fieldsV1 };
}

const labelFields = {
  '.': {},
  'f:app': {},
  'f:app.kubernetes.io/name': {},
  'f:app.kubernetes.io/part-of': {},
};

const serviceFields = {
  'f:metadata': {
    'f:annotations': { '.': {}, 'f:kubectl.kubernetes.io/last-applied-configuration': {} },
    'f:labels': labelFields,
  },
  'f:spec': {
    'f:internalTrafficPolicy': {},
    'f:ports': {
      '.': {},
      'k:{"port":80,"protocol":"TCP"}': {
        '.': {},
        'f:name': {},
        'f:port': {},
        'f:protocol': {},
        'f:targetPort': {},
      },
    },
    'f:selector': {},
    'f:sessionAffinity': {},
    'f:type': {},
  },
};

function sliceFields(owner: string): object {
  return {
    'f:addressType': {},
    'f:endpoints': {},
    'f:metadata': {
      'f:annotations': { '.': {}, 'f:endpoints.kubernetes.io/last-change-trigger-time': {} },
      'f:generateName': {},
      'f:labels': {
        ...labelFields,
        'f:endpointslice.kubernetes.io/managed-by': {},
        'f:kubernetes.io/service-name': {},
      },
      'f:ownerReferences': { '.': {}, [`k:{"uid":"${owner}"}`]: {} },
    },
    'f:ports': {},
  };
}

function uid(group: string, number: number): string {
  return `6c1d4b4e-${group}-4b4e-9d5a-${String(number).padStart(12, '0')}`;
}
