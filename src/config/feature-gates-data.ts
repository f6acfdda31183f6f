/** The stage of a feature. */
export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';

/** Gates with the same stage, default and lock. */
interface GateGroup {
  readonly stage: GateStage;
  readonly default: boolean;
  readonly locked: boolean;
  /** Names, separated by white space. */
  readonly names: string;
}

/**
 * The gates of all components of Kubernetes 1.37: upstream accepts every one of them. Alpha and beta gates are
 * complete, from upstream's help. The others are those that upstream was observed to accept; their defaults are the
 * documented ones where they cannot be observed.
 */
export const gateGroups: readonly GateGroup[] = [
  {
    stage: 'ALPHA',
    default: false,
    locked: false,
    names: `
    APIServerWebhookAuthenticationToken APIServingWithRoutine AllAlpha AtomicWriteVolumeUserFields
    CBORServingAndStorage CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ClientsAllowCBOR
    ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
    CompositePodGroup ConsistentListFromCacheSkipTimeoutFallback ContainerStopSignals
    ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource DRADerivedAttributes
    DRADeviceCompatibilityGroups DRAListTypeAttributes DRANodeAllocatableResources DRAOptionalNodeOperations
    DRAPartitionableDevicesType DRAResourcePoolStatus DefaultPodSysctls EmptyDirVolumeMode EventedPLEG
    EvictionRequestAPI GRPCContainerProbeTLS H2CContainerProbe ImageVolumeWithDigest
    InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
    InPlacePodVerticalScalingMemoryBackedVolumes InPlacePodVerticalScalingSchedulerPreemption
    InterPodAffinityHostnameFastPath KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint
    LoggingAlphaOptions MutablePVNodeAffinity NodeLifecycleConditions PodGroupPreemptionPolicy
    PodLogsQuerySplitStreams QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
    SchedulerPreQueueingHints ShardedListAndWatch StatefulSetRecreateStrategy StorageVersionAPI
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
    UserNamespacesHostNetworkSupport VolumeBindMountOptions WindowsCPUAndMemoryAffinity WorkloadWithJob`,
  },
  {
    stage: 'BETA',
    default: false,
    locked: false,
    names: `
    AllBeta CoordinatedLeaderElection DRAFractionalCapacityRange DRAWorkloadResourceClaims GenericWorkload
    LocalStorageCapacityIsolationFSQuotaMonitoring PodAndContainerStatsFromCRI PodLevelResourceManagers
    SchedulerAsyncAPICalls`,
  },
  {
    stage: 'BETA',
    default: true,
    locked: false,
    names: `
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth
    AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
    CPUManagerPolicyBetaOptions CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
    ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
    ConcurrentWatchObjectDecode ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules
    ContextualLogging DRAConsumableCapacity DRADeviceBindingConditions DRAPartitionableDevices
    DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles EtcdRangeStream
    ExcludeAdmissionWebhookVirtualResources ExtendWebSocketsToKubelet GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero
    HugepageAwareEviction InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
    KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletInUserNamespace KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NFTablesNetlink
    NativeHistograms NodeControllerLeaseCircuitBreaker NominatedNodeNameForExpectation OpenAPIEnums
    OpportunisticBatching PersistentVolumeClaimUnusedSinceTime PodDeletionCost PodLevelResources
    PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass PodTopologyLabelsAdmission PodsAPI
    PortForwardWebsockets ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
    RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageVersionHash StrictIPCIDRValidation
    StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
    TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO VolumeLimitScaling WatchList
    WatchListClient WatchListCompression WebhookRoundTripLoadBalancing WindowsGracefulNodeShutdown`,
  },
  {
    stage: 'GA',
    default: true,
    locked: true,
    names: `
    CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets
    CustomResourceFieldSelectors DRAAdminAccess DRAExtendedResource DRAPrioritizedList
    DRAResourceClaimDeviceStatus DeclarativeValidation DisableAllocatorDualWrite DynamicResourceAllocation
    ExecProbeTimeout ExternalServiceAccountTokenSigner HPAConfigurableTolerance HostnameOverride
    ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
    InPlacePodVerticalScalingInitContainers JobManagedBy KubeletCgroupDriverFromCRI
    KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet
    KubeletTracing MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
    NFTablesProxyMode NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
    PLEGOnDemandRelist PodObservedGenerationTracking PodReadyToStartContainersCondition
    PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
    RecursiveReadOnlyMounts RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation
    SELinuxChangePolicy SELinuxMountReadWriteOncePod SeparateTaintEvictionController
    ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenPodNodeInfo SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions
    UserNamespacesSupport VolumeAttributesClass WatchCacheInitializationPostStartHook WinDSR WinOverlay`,
  },
  {
    stage: 'GA',
    default: true,
    locked: false,
    names: `
    AllowServiceExternalIPs ClusterTrustBundle ClusterTrustBundleProjection CustomCPUCFSQuotaPeriod
    DRADeviceTaintRules DRADeviceTaints InformerResourceVersion MutatingAdmissionPolicy
    PodCertificateRequest SELinuxMount StorageVersionMigrator`,
  },
  {
    stage: 'DEPRECATED',
    default: false,
    locked: true,
    names: `
    AllowOverwriteTerminationGracePeriodSeconds DeclarativeValidationTakeover GitRepoVolumeDriver
    SeparateCacheWatchRPC`,
  },
  {
    stage: 'DEPRECATED',
    default: false,
    locked: false,
    names: `
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    ChangeContainerStatusOnKubeletRestart KMSv1 KubeletRegistrationGetOnExistsOnly
    ServiceCIDRStatusFieldWiping WindowsHostNetwork`,
  },
  {
    stage: 'DEPRECATED',
    default: true,
    locked: true,
    names: `
    AggregatedDiscoveryRemoveBetaType DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion`,
  },
  {
    stage: 'DEPRECATED',
    default: true,
    locked: false,
    names: `
    KubeProxyIPVS StorageNamespaceIndex`,
  },
];

/** Dependencies: by gate, the gates that cannot be on while it is off. */
export const gateDependents: Readonly<Record<string, string>> = {
  APIServerIdentity: 'StorageVersionAPI UnknownVersionInteroperabilityProxy',
  AtomicFIFO: `NodeControllerLeaseCircuitBreaker StaleControllerConsistencyDaemonSet
    StaleControllerConsistencyHPA StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet`,
  ClusterTrustBundle: 'ClusterTrustBundleProjection',
  ContainerRestartRules: 'RestartAllContainersOnContainerExits',
  DRAConsumableCapacity: 'DRAFractionalCapacityRange',
  DRADeviceTaints: 'DRADeviceTaintRules',
  DRAPartitionableDevices: 'DRADeviceCompatibilityGroups DRAPartitionableDevicesType',
  DRAResourcePoolStatus: 'DRAPartitionableDevicesType',
  GenericWorkload: `CompositePodGroup DRAWorkloadResourceClaims PodGroupPreemptionPolicy
    TopologyAwareWorkloadScheduling WorkloadWithJob`,
  GracefulNodeShutdown: 'GracefulNodeShutdownBasedOnPodPriority WindowsGracefulNodeShutdown',
  MatchLabelKeysInPodTopologySpread: 'MatchLabelKeysInPodTopologySpreadSelectorMerge',
  PodLevelResources: `InPlacePodLevelResourcesVerticalScaling PodLevelResourceManagers
    PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass`,
  ResourceHealthStatus: 'ResourceHealthStatusMessage',
  TopologyAwareWorkloadScheduling: 'CompositePodGroup',
};
