//! The Cloud Hypervisor backend.

use vmcell::backend::CloudHypervisor;

use crate::{Fake, boots_and_stops, builder};

#[tokio::test]
async fn a_vm_boots_from_a_command_line_and_ends_when_its_guest_powers_off() {
    for version in ["cloud-hypervisor v51.1.0", "cloud-hypervisor v52.0"] {
        let fake = Fake::new("cloud-hypervisor", version);
        let backend = CloudHypervisor::at(fake.path("cloud-hypervisor"));
        // The fake only checks the beginning of the file.
        let kernel = fake.write("vmlinux", "\x7fELF");
        boots_and_stops(builder(backend).kernel(kernel), "cloud_hypervisor").await;
    }
}

#[tokio::test]
async fn a_kernel_without_a_pci_bus_is_refused() {
    let fake = Fake::new("cloud-hypervisor", "cloud-hypervisor v51.1.0");
    let backend = CloudHypervisor::at(fake.path("cloud-hypervisor"));
    let kernel = fake.write("vmlinux", "\x7fELF");
    fake.write("config", "# CONFIG_PCI is not set\n");
    let error = builder(backend).kernel(kernel).start().await.unwrap_err();
    assert_eq!(error.code(), "bad-file", "{error:?}");
    assert!(error.to_string().contains("CONFIG_VIRTIO_PCI"), "{error}");
}
