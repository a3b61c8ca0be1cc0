//! `deploy/kubernetes/`: names in one manifest exist in the others. A wrong label or port is valid YAML and an outage.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use rowhouse_tests::binary;
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::support::{Rowhouse, files, is_there, one_of, place, run, tenant, text, tool, yaml};

/// Each kind in use, with its API version.
const KINDS: [(&str, &str); 7] = [
    ("Namespace", "v1"),
    ("PersistentVolumeClaim", "v1"),
    ("Deployment", "apps/v1"),
    ("Service", "v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("PodDisruptionBudget", "policy/v1"),
    ("NetworkPolicy", "networking.k8s.io/v1"),
];

/// Returns the only document of a file.
fn document(path: &str) -> Value {
    let mut documents = yaml(path);
    assert_eq!(documents.len(), 1, "{path}");
    documents.remove(0)
}

fn base(file: &str) -> Value {
    document(&format!("kubernetes/base/{file}.yaml"))
}

fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value
        .pointer(pointer)
        .unwrap_or_else(|| panic!("no `{pointer}` in {value}"))
}

fn items<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer)
        .as_array()
        .unwrap_or_else(|| panic!("`{pointer}` is no list"))
}

fn word<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer)
        .as_str()
        .unwrap_or_else(|| panic!("`{pointer}` is no text"))
}

fn number(value: &Value, pointer: &str) -> u64 {
    at(value, pointer)
        .as_u64()
        .unwrap_or_else(|| panic!("`{pointer}` is no number"))
}

fn names(list: &[Value]) -> BTreeSet<&str> {
    list.iter().map(|item| word(item, "/name")).collect()
}

fn container(deployment: &Value) -> &Value {
    let containers = items(deployment, "/spec/template/spec/containers");
    assert_eq!(containers.len(), 1);
    &containers[0]
}

/// Returns a variable of the container's environment.
fn variable<'a>(container: &'a Value, name: &str) -> &'a str {
    items(container, "/env")
        .iter()
        .find(|variable| word(variable, "/name") == name)
        .map(|variable| word(variable, "/value"))
        .unwrap_or_else(|| panic!("the container does not set {name}"))
}

#[test]
fn each_manifest_has_known_kind_and_is_listed() {
    let kustomization = base("kustomization");
    let listed: BTreeSet<String> = items(&kustomization, "/resources")
        .iter()
        .map(|file| format!("kubernetes/base/{}", file.as_str().expect("text")))
        .collect();
    let there: BTreeSet<String> = files("kubernetes/base")
        .into_iter()
        .filter(|file| !file.ends_with("/kustomization.yaml"))
        .collect();
    assert_eq!(listed, there);
    let mut kinds = BTreeSet::new();
    for file in &there {
        let manifest = document(file);
        let kind = (word(&manifest, "/kind"), word(&manifest, "/apiVersion"));
        assert!(KINDS.contains(&kind), "{file}: {kind:?}");
        assert!(kinds.insert(kind.0.to_owned()), "{file}: a second one");
        word(&manifest, "/metadata/name");
    }
    assert_eq!(kinds.len(), KINDS.len());
    assert_eq!(
        word(&base("namespace"), "/metadata/name"),
        word(&kustomization, "/namespace")
    );
    assert_eq!(
        word(&items(&kustomization, "/images")[0], "/name"),
        word(container(&base("deployment")), "/image")
    );
}

#[test]
fn every_selector_matches_pods() {
    let deployment = base("deployment");
    let labels = at(&deployment, "/spec/template/metadata/labels");
    let spread = &items(&deployment, "/spec/template/spec/topologySpreadConstraints")[0];
    for (who, selector) in [
        (
            "the deployment",
            at(&deployment, "/spec/selector/matchLabels"),
        ),
        ("the spread", at(spread, "/labelSelector/matchLabels")),
        ("the service", at(&base("service"), "/spec/selector")),
        (
            "the budget",
            at(&base("disruption-budget"), "/spec/selector/matchLabels"),
        ),
        (
            "the policy",
            at(&base("network-policy"), "/spec/podSelector/matchLabels"),
        ),
    ] {
        let selector = selector.as_object().expect("labels");
        assert!(!selector.is_empty(), "{who} selects everything");
        for (name, value) in selector {
            assert_eq!(labels.get(name), Some(value), "{who}: {name}");
        }
    }
}

#[test]
fn every_port_has_one_name_and_one_number() {
    let deployment = base("deployment");
    let container = container(&deployment);
    let port = |name: &str| {
        let port = items(container, "/ports")
            .iter()
            .find(|port| word(port, "/name") == name)
            .unwrap_or_else(|| panic!("the container has no port `{name}`"));
        number(port, "/containerPort").to_string()
    };
    for (name, variable_name) in [("http", "ROWHOUSE_LISTEN"), ("admin", "ROWHOUSE_ADMIN")] {
        let address = variable(container, variable_name);
        assert_eq!(address, format!("0.0.0.0:{}", port(name)));
    }
    let service = base("service");
    let ports = items(&service, "/spec/ports");
    assert_eq!(ports.len(), 1, "the admin port has no Service");
    assert_eq!(word(&ports[0], "/targetPort"), "http");
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert_eq!(word(container, &format!("/{probe}/httpGet/port")), "admin");
    }
}

#[test]
fn only_prometheus_reaches_admin_port() {
    let policy = base("network-policy");
    let mut open = BTreeSet::new();
    for rule in items(&policy, "/spec/ingress") {
        for port in items(rule, "/ports") {
            let name = word(port, "/port");
            assert!(open.insert(name.to_owned()), "two rules for {name}");
            if name != "admin" {
                continue;
            }
            let from = items(rule, "/from");
            assert_eq!(from.len(), 1, "each entry of the list opens it further");
            assert_eq!(
                word(&from[0], "/podSelector/matchLabels/app.kubernetes.io~1name"),
                "prometheus"
            );
            word(
                &from[0],
                "/namespaceSelector/matchLabels/kubernetes.io~1metadata.name",
            );
        }
    }
    assert_eq!(open, ["admin", "http"].map(ToOwned::to_owned).into());
    assert!(items(&policy, "/spec/egress").is_empty());
    let types = items(&policy, "/spec/policyTypes");
    assert!(types.contains(&"Egress".into()) && types.contains(&"Ingress".into()));
}

#[test]
fn every_mount_has_its_volume_and_every_volume_its_source() {
    let deployment = base("deployment");
    let container = container(&deployment);
    let volumes = items(&deployment, "/spec/template/spec/volumes");
    assert_eq!(names(items(container, "/volumeMounts")), names(volumes));
    let mounted = |name: &str| {
        items(container, "/volumeMounts")
            .iter()
            .find(|mount| word(mount, "/name") == name)
            .unwrap_or_else(|| panic!("`{name}` is not mounted"))
    };
    let tenants = mounted("tenants");
    assert_eq!(
        word(tenants, "/mountPath"),
        variable(container, "ROWHOUSE_TENANTS")
    );
    assert_eq!(at(tenants, "/readOnly"), true);
    let claims: Vec<&str> = volumes
        .iter()
        .filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str())
        .collect();
    assert_eq!(claims, [word(&base("tenants"), "/metadata/name")]);
}

#[test]
fn pod_has_no_unneeded_privilege() {
    let deployment = base("deployment");
    let pod = at(&deployment, "/spec/template/spec");
    let container = container(&deployment);
    assert_eq!(at(pod, "/securityContext/runAsNonRoot"), true);
    assert!(number(pod, "/securityContext/runAsUser") > 0);
    assert_eq!(
        word(pod, "/securityContext/seccompProfile/type"),
        "RuntimeDefault"
    );
    assert_eq!(at(pod, "/automountServiceAccountToken"), false);
    assert_eq!(
        at(pod, "/enableServiceLinks"),
        false,
        "a service named rowhouse would set variables that are the program's"
    );
    assert_eq!(
        at(container, "/securityContext/readOnlyRootFilesystem"),
        true
    );
    assert_eq!(
        at(container, "/securityContext/allowPrivilegeEscalation"),
        false
    );
    assert_eq!(
        items(container, "/securityContext/capabilities/drop"),
        ["ALL"]
    );
    assert!(at(container, "/resources/limits").get("cpu").is_none());
    word(container, "/resources/limits/memory");
    assert_eq!(
        word(
            &base("namespace"),
            "/metadata/labels/pod-security.kubernetes.io~1enforce"
        ),
        "restricted"
    );
}

#[test]
fn pod_has_enough_time_to_shut_down() {
    let deployment = base("deployment");
    let container = container(&deployment);
    let grace: u64 = variable(container, "ROWHOUSE_GRACE")
        .parse()
        .expect("seconds");
    let sleep = number(container, "/lifecycle/preStop/sleep/seconds");
    let allowed = number(
        &deployment,
        "/spec/template/spec/terminationGracePeriodSeconds",
    );
    assert!(sleep + grace < allowed, "{sleep} + {grace} < {allowed}");
    assert_eq!(
        number(&deployment, "/spec/strategy/rollingUpdate/maxUnavailable"),
        0
    );
}

#[test]
fn autoscaler_finds_its_deployment() {
    let (autoscaler, deployment) = (base("autoscaler"), base("deployment"));
    for (theirs, its) in [
        ("apiVersion", "apiVersion"),
        ("kind", "kind"),
        ("name", "metadata/name"),
    ] {
        assert_eq!(
            word(&autoscaler, &format!("/spec/scaleTargetRef/{theirs}")),
            word(&deployment, &format!("/{its}"))
        );
    }
    assert!(number(&autoscaler, "/spec/minReplicas") >= 2);
    assert!(
        deployment.pointer("/spec/replicas").is_none(),
        "each `apply` would undo what the autoscaler did"
    );
    // Utilisation is a share of the request.
    word(container(&deployment), "/resources/requests/cpu");
    number(&base("disruption-budget"), "/spec/maxUnavailable");
}

#[test]
fn probes_use_paths_of_admin_listener() {
    let folder = TempDir::new().expect("a folder");
    tenant(&folder.path().join("home"), "Home", "root: true\n");
    let rowhouse = Rowhouse::start(folder.path(), "https://studio.example");
    let deployment = base("deployment");
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let path = word(container(&deployment), &format!("/{probe}/httpGet/path")).to_owned();
        let (status, _) = rowhouse.get_admin(&path).expect("an answer");
        assert_eq!(status, 200, "{path}");
    }
    assert_eq!(
        rowhouse.get_admin("/healthz").map(|answer| answer.0),
        Some(404)
    );
}

#[test]
fn config_maps_are_mounted_as_folders_of_tenants() {
    let kustomization = document("kubernetes/configmap/kustomization.yaml");
    assert_eq!(
        at(&kustomization, "/generatorOptions/disableNameSuffixHash"),
        true
    );
    let patch = document("kubernetes/configmap/tenants.yaml");
    let volume = &items(&patch, "/spec/template/spec/volumes")[0];
    let sources = items(volume, "/projected/sources");
    let generated = items(&kustomization, "/configMapGenerator");
    assert_eq!(sources.len(), generated.len());
    let folder = TempDir::new().expect("a folder");
    for source in sources {
        let name = word(source, "/configMap/name");
        let map = generated
            .iter()
            .find(|map| word(map, "/name") == name)
            .unwrap_or_else(|| panic!("nothing makes the ConfigMap `{name}`"));
        for item in items(source, "/configMap/items") {
            let key = word(item, "/key");
            let file = items(map, "/files")
                .iter()
                .filter_map(|file| file.as_str()?.split_once('='))
                .find(|(known, _)| *known == key)
                .unwrap_or_else(|| panic!("`{name}` has no `{key}`"))
                .1;
            let target = folder.path().join("tenants").join(word(item, "/path"));
            fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
            fs::write(target, text(&format!("kubernetes/configmap/{file}"))).expect("a file");
        }
    }
    let (content, said) = run(Command::new(binary())
        .arg("check")
        .current_dir(folder.path()));
    assert!(content, "{said}");
}

/// Returns what `kubectl apply -k` would send for a variant, or `None` without a program that can build it.
fn built(variant: &str) -> Option<Vec<Value>> {
    let said = built_text(variant)?;
    Some(serde_saphyr::from_multiple(&said).expect("YAML"))
}

fn built_text(variant: &str) -> Option<String> {
    let program = one_of(&["kubectl", "kustomize"])?;
    let verb = if program == "kubectl" {
        "kustomize"
    } else {
        "build"
    };
    let folder = place("kubernetes").join(variant).display().to_string();
    let (content, said) = tool(program, &[verb, &folder]);
    assert!(content, "{said}");
    Some(said)
}

/// Returns the only document of a kind.
fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    let mut found = documents.iter().filter(|one| word(one, "/kind") == kind);
    let one = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "two of {kind}");
    one
}

#[test]
fn kustomize_builds_every_variant() {
    for (variant, claims) in [("base", 1), ("configmap", 0), ("https", 1)] {
        let Some(documents) = built(variant) else {
            return;
        };
        let kinds: Vec<&str> = documents.iter().map(|one| word(one, "/kind")).collect();
        let count = kinds
            .iter()
            .filter(|kind| **kind == "PersistentVolumeClaim")
            .count();
        assert_eq!(count, claims, "{variant}: {kinds:?}");
        let deployment = of_kind(&documents, "Deployment");
        let volumes = items(deployment, "/spec/template/spec/volumes");
        let of_tenants = volumes
            .iter()
            .find(|volume| word(volume, "/name") == "tenants")
            .expect("tenants");
        let source = if claims == 1 {
            "persistentVolumeClaim"
        } else {
            "projected"
        };
        assert!(
            of_tenants.get(source).is_some()
                && of_tenants.as_object().is_some_and(|all| all.len() == 2)
        );
        assert!(word(container(deployment), "/image").starts_with("registry.example/rowhouse:"));
        assert_eq!(
            names(items(container(deployment), "/volumeMounts")),
            names(volumes)
        );
    }
}

#[test]
fn fleet_variant_has_bucket_in_place_of_volume() {
    let Some(documents) = built("fleet") else {
        return;
    };
    let kinds: BTreeSet<&str> = documents.iter().map(|one| word(one, "/kind")).collect();
    assert!(!kinds.contains("PersistentVolumeClaim"), "{kinds:?}");
    let deployment = of_kind(&documents, "Deployment");
    let container = container(deployment);
    assert!(variable(container, "ROWHOUSE_STORE").starts_with("s3://"));
    let set = names(items(container, "/env"));
    for folder in ["ROWHOUSE_TENANTS", "ROWHOUSE_WATCH"] {
        assert!(
            !set.contains(folder),
            "{folder} has no effect with a bucket"
        );
    }
    let volumes = names(items(deployment, "/spec/template/spec/volumes"));
    assert_eq!(volumes, ["state"].into());
    assert_eq!(names(items(container, "/volumeMounts")), volumes);
    word(container, "/envFrom/0/secretRef/name");
    let policy = of_kind(&documents, "NetworkPolicy");
    let open: Vec<u64> = items(policy, "/spec/egress")
        .iter()
        .flat_map(|rule| items(rule, "/ports"))
        .map(|port| number(port, "/port"))
        .collect();
    assert_eq!(open, [443, 53, 53]);
}

#[test]
fn every_variant_matches_api_schemas() {
    if !is_there("kubernetes-validate") {
        return;
    }
    let file = NamedTempFile::new().expect("a file");
    let validate = |version| {
        let mut command = Command::new("kubernetes-validate");
        command.args(["--strict", "--kubernetes-version", version]);
        run(command.arg(file.path()))
    };
    for variant in ["base", "configmap", "fleet", "https"] {
        let Some(text) = built_text(variant) else {
            return;
        };
        fs::write(file.path(), text).expect("a file");
        // The first version with all features in use, and a late one.
        for version in ["1.30.0", "1.37.0"] {
            let (holds, said) = validate(version);
            assert!(holds, "{variant} in {version}: {said}");
            assert!(said.contains("deployment/rowhouse"), "{said}");
        }
        let (holds, said) = validate("1.28.0");
        assert!(!holds && said.contains("'sleep' was unexpected"), "{said}");
    }
}

#[test]
fn https_variant_has_consistent_ports_and_certificate() {
    let Some(documents) = built("https") else {
        return;
    };
    let deployment = of_kind(&documents, "Deployment");
    let container = container(deployment);
    let open = items(
        of_kind(&documents, "NetworkPolicy"),
        "/spec/ingress/0/ports",
    );
    let open: BTreeSet<&str> = open.iter().map(|port| word(port, "/port")).collect();
    let service = of_kind(&documents, "Service");
    let served = items(service, "/spec/ports").iter();
    let served: BTreeSet<(&str, u64)> = served
        .map(|port| (word(port, "/targetPort"), number(port, "/port")))
        .collect();
    assert_eq!(served, [("http-redirect", 80), ("https", 443)].into());
    assert_eq!(open, served.iter().map(|(name, _)| *name).collect());
    for (name, variable_name) in [
        ("https", "ROWHOUSE_HTTPS"),
        ("http-redirect", "ROWHOUSE_HTTP_REDIRECT"),
    ] {
        let port = items(container, "/ports")
            .iter()
            .find(|port| word(port, "/name") == name)
            .map(|port| number(port, "/containerPort"));
        let address = variable(container, variable_name);
        assert_eq!(
            Some(address),
            port.map(|port| format!("0.0.0.0:{port}")).as_deref()
        );
    }
    assert_eq!(word(service, "/spec/externalTrafficPolicy"), "Local");
    let believed = items(container, "/env").iter();
    let believed = believed.filter(|one| word(one, "/name") == "ROWHOUSE_TRUSTED_PROXY");
    assert_eq!(believed.count(), 0, "no proxy is trusted");

    // The keys of a Secret of the type `kubernetes.io/tls`, in the mounted folder.
    let mount = items(container, "/volumeMounts")
        .iter()
        .find(|mount| word(mount, "/name") == "certificate")
        .expect("the certificate");
    assert!(mount.get("subPath").is_none(), "it would never change");
    let folder = word(mount, "/mountPath");
    for (file, variable_name) in [
        ("tls.crt", "ROWHOUSE_CERTIFICATE"),
        ("tls.key", "ROWHOUSE_CERTIFICATE_KEY"),
    ] {
        let path = variable(container, variable_name);
        assert_eq!(path, format!("{folder}/{file}"));
    }
}
