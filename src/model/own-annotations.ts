/** What annotations of Services that this program reads begin with. */
export const annotationPrefix = 'kube-proxy-ts.dev/';

/** Values by the part of the key behind the prefix. */
export type OwnAnnotations = Readonly<Record<string, string>>;

/** The path of such an annotation in an object, as problems name it. */
export function annotationPath(name: string): string {
  return `metadata.annotations["${annotationPrefix}${name}"]`;
}
