/** What annotations of Services that this program reads begin with. */
export const annotationPrefix = 'kube-proxy-ts.dev/';

/** Values by the part of the key behind the prefix. */
export type OwnAnnotations = Readonly<Record<string, string>>;

/** The path of such an annotation in an object, as problems name it. */
export function annotationPath(name: string): string {
  return `metadata.annotations["${annotationPrefix}${name}"]`;
}

/** On a Service: overrides the flag --reset-departed. */
export const resetDepartedAnnotation = `${annotationPrefix}reset-departed`;

/** Which connections to endpoints that are gone get a reset. */
export type ResetDeparted = 'off' | 'tcp';

/** Undefined when the text is none of the values. */
export function parseResetDeparted(text: string): ResetDeparted | undefined {
  return text === 'off' || text === 'tcp' ? text : undefined;
}
