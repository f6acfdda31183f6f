/** How far a feature has come. */
export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';

/** Gates that share stage, default and whether the default can be changed. */
interface GateGroup {
  readonly stage: GateStage;
  readonly default: boolean;
  readonly locked: boolean;
  /** Names, separated by white space. */
  readonly names: string;
}

/**
 * The gates of Kubernetes 1.37, all components together, because upstream accepts every one of them. Alpha and beta
 * are complete. Of the others, which help does not list, those are here that the Kubernetes documentation names; a
 * gate is marked locked where that is certain, so a doubtful one can be set and is warned about.
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
    AnonymousAuthConfigurableEndpoints AnyVolumeDataSource BtreeWatchCache CPUManagerPolicyOptions
    DRADeviceTaintRules DRADeviceTaints DynamicResourceAllocation HPAConfigurableTolerance InOrderInformers
    InPlacePodVerticalScaling JobBackoffLimitPerIndex JobPodReplacementPolicy JobSuccessPolicy KubeletPSI
    KubeletTracing MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator NFTablesProxyMode
    NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread NodeSwap OrderedNamespaceDeletion
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
    PodReadyToStartContainersCondition PreferSameTrafficDistribution ProcMountType
    RecoverVolumeExpansionFailure RecursiveReadOnlyMounts RelaxedDNSSearchValidation
    RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation ResilientWatchCacheInitialization
    SeparateTaintEvictionController ServiceAccountTokenNodeBinding ServiceTrafficDistribution
    SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration TopologyAwareHints UserNamespacesSupport VolumeAttributesClass
    WatchCacheInitializationPostStartHook WinDSR WinOverlay`,
  },
  {
    stage: 'GA',
    default: true,
    locked: false,
    names: `
    APIServerTracing AllowServiceExternalIPs AuthorizeNodeWithSelectors AuthorizeWithSelectors
    CRDValidationRatcheting CSIServiceAccountTokenSecrets ClusterTrustBundle ClusterTrustBundleProjection
    ConsistentListFromCache CronJobsScheduledAnnotation CustomResourceFieldSelectors DRAAdminAccess
    DRAExtendedResource DRAPrioritizedList DRAResourceClaimDeviceStatus DeclarativeValidation
    DisableAllocatorDualWrite DisableCPUQuotaWithExclusiveCPUs ElasticIndexedJob ExecProbeTimeout
    ExternalServiceAccountTokenSigner HostnameOverride ImageMaximumGCAge ImageVolume
    InPlacePodVerticalScalingInitContainers InformerResourceVersion JobManagedBy KubeletCgroupDriverFromCRI
    KubeletFineGrainedAuthz KubeletPodResourcesDynamicResources KubeletPodResourcesGet LogarithmicScaleDown
    MemoryManager MutableCSINodeAllocatableCount MutatingAdmissionPolicy NodeLogQuery PLEGOnDemandRelist
    PodCertificateRequest PodIndexLabel PodSchedulingReadiness PreventStaticPodAPIReferences
    RetryGenerateName SELinuxChangePolicy SELinuxMount SELinuxMountReadWriteOncePod SchedulerQueueingHints
    ServiceAccountTokenJTI ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo
    StatefulSetAutoDeletePVC StatefulSetStartOrdinal StrictCostEnforcementForVAP
    StrictCostEnforcementForWebhooks StructuredAuthorizationConfiguration SupplementalGroupsPolicy
    SystemdWatchdog TopologyManagerPolicyOptions`,
  },
  {
    stage: 'DEPRECATED',
    default: false,
    locked: false,
    names: `
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
    DeclarativeValidationTakeover GitRepoVolumeDriver InPlacePodVerticalScalingAllocatedStatus KMSv1
    SeparateCacheWatchRPC WatchFromStorageWithoutResourceVersion WindowsHostNetwork`,
  },
  {
    stage: 'DEPRECATED',
    default: true,
    locked: false,
    names: `
    DisableNodeKubeProxyVersion KubeProxyIPVS StorageNamespaceIndex`,
  },
];

/** Gates that cannot be on while another is off: [dependent, what it needs]. */
export const gateDependencies: readonly (readonly [gate: string, needs: string])[] = [
  ['StaleControllerConsistencyDaemonSet', 'AtomicFIFO'],
  ['StaleControllerConsistencyHPA', 'AtomicFIFO'],
  ['StaleControllerConsistencyJob', 'AtomicFIFO'],
  ['StaleControllerConsistencyReplicaSet', 'AtomicFIFO'],
  ['StaleControllerConsistencyStatefulSet', 'AtomicFIFO'],
];
